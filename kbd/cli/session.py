"""What every command starts from: options given before it, the environment, and the clock."""

from __future__ import annotations

import contextlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, tzinfo
from functools import cached_property
from pathlib import Path

import kbd.sources
from kbd.config import Config, data_dir, default_config, find_config, load_config, state_dir, state_path
from kbd.errors import KbdError, LedgerDamaged, UsageError
from kbd.store.ledger import Ledger, distrusting, open_reading
from kbd.store.ledger.database import RESTORING
from kbd.store.ledger.soundness import fault_of
from kbd.store.localzone import LocalZone


class Session:
    """One call of the command line; configuration and state directory are looked for when first asked for.

    Attributes:
        env: the environment; home: the user's home.
        given_now: the time comes from `--now`.
    """

    def __init__(self, config: str | None, state: str | None, now: datetime | None, env: Mapping[str, str]) -> None:
        """Take the global options; nothing is read yet."""
        self._config_option, self._state_option, self._now = config, state, now
        self.env = env
        self.home = env.get("HOME") or os.path.expanduser("~")
        self.given_now = now is not None

    @property
    def has_given_paths(self) -> bool:
        """Configuration and state directory were both named, so neither is the caller's own by default."""
        config = self._config_option or self.env.get("KBD_CONFIG")
        return bool(config and (self._state_option or self.env.get("KBD_STATE_DIR")))

    @cached_property
    def config(self) -> Config:
        """The configuration; raises UsageError with all its faults.

        Agents' usual folders are not held against the bases: that takes all decoders, and reading commands are quick.
        """
        return load_config(self.config_path, _agents()) if self.config_path else default_config(data_dir())

    @cached_property
    def config_path(self) -> Path | None:
        """The configuration file; None: built-in defaults."""
        return find_config(self._config_option, self.env)

    def load(self) -> Config:
        """Read the configuration anew, all checks included; raises UsageError with all its faults.

        A file that came since then is taken, one that went is a fault: the defaults are for who never had any.
        """
        self.config_path = self.config_path or find_config(self._config_option, self.env)
        if self.config_path is None:
            return default_config(data_dir())
        from kbd.sources.registry import formats  # noqa: PLC0415 - imports every decoder

        known = formats()
        return load_config(
            self.config_path,
            frozenset(known),
            lambda agent: known[agent].default_roots(self.env, self.home) if agent in known else (),
        )

    @property
    def state_path(self) -> Path:
        """Where the state directory is, or would be; nothing is made."""
        return state_path(self._state_option, self.env)

    @cached_property
    def state_dir(self) -> Path:
        """The state directory, made if needed; raises UsageError."""
        return state_dir(self._state_option, self.env)

    def now(self) -> datetime:
        """Return `--now`, else the time; UTC."""
        return self._now or self.real_now()

    def real_now(self) -> datetime:
        """Return the real time, whatever `--now` says; UTC."""
        return datetime.now(UTC)

    @property
    def today(self) -> date:
        """The UTC day."""
        return self.now().date()

    @property
    def zone(self) -> tzinfo:
        """The zone of the machine, with the offset it has at each time."""
        return LocalZone()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Ledger | None]:
        """Open the ledger at one moment in time, whatever the daemon writes meanwhile; None if there is none yet.

        Raises:
            LedgerDamaged: it cannot be read.
        """
        ledger = open_reading(self.state_dir)
        if ledger is None:
            yield None
            return
        with contextlib.closing(ledger), distrusting(ledger):
            ledger.db.execute("BEGIN")
            yield ledger

    def damage(self) -> LedgerDamaged | None:
        """Return what is wrong with the ledger, which is read as a whole; None if nothing is, or there is none."""
        try:
            with self.reading() as ledger:
                fault = fault_of(ledger.db) if ledger else ""
                return LedgerDamaged(fault, where=str(ledger.path), hint=RESTORING) if ledger and fault else None
        except LedgerDamaged as damaged:
            return damaged
        except KbdError:
            return None  # what cannot be looked at is blamed for nothing


def _agents() -> frozenset[str]:
    """Return the agents whose transcripts can be read: a source's module has the name of its agent."""
    return frozenset(module.name.replace("_", "-") for module in pkgutil.iter_modules(kbd.sources.__path__))


def parse_now(text: str) -> datetime:
    """Return the time that `--now` means: of a date its noon, without an offset UTC.

    Raises:
        UsageError: it is neither a date nor an ISO date and time.
    """
    try:
        if len(text) <= len("YYYY-MM-DD"):
            return datetime.combine(date.fromisoformat(text), time(12), UTC)
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--now: {text!r} is no time", hint="write 2026-06-11 or 2026-06-11T09:30:00Z") from error
