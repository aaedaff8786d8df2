"""The ledger: what was cited, by whom, when, and what kbd did about it."""

from kbd.store.ledger.database import Ledger, back_up, backups, open_ledger, open_reading

__all__ = ["Ledger", "back_up", "backups", "open_ledger", "open_reading"]
