"""The ledger: what was cited, by whom, when, and what kbd did about it."""

from kbd.store.ledger.backups import back_up, backups, promise
from kbd.store.ledger.database import Ledger, distrusting, open_reading
from kbd.store.ledger.opening import open_ledger

__all__ = ["Ledger", "back_up", "backups", "distrusting", "open_ledger", "open_reading", "promise"]
