"""A bad world as exceptions: each carries the exit code of the command that meets it.

Bad input is no exception but a `kbd.core.model.Problem`, counted and shown.
"""

from __future__ import annotations

from typing import ClassVar


class KbdError(Exception):
    """Base of all errors that kbd raises on purpose.

    Attributes:
        exit_code: what the command line returns.
        where: file, line or object concerned; may be empty.
        what: the fault in one clause.
        hint: what to do about it; may be empty.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        """Build the message from its three parts."""
        self.where = where
        self.what = what
        self.hint = hint
        super().__init__(self.message())

    def message(self) -> str:
        """Return `where: what; hint` with the empty parts left out."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}; {self.hint}" if self.hint else head


class UsageError(KbdError):
    """A wrong argument or a broken configuration."""

    exit_code = 2


class NotRunning(KbdError):
    """No daemon runs on this state directory."""

    exit_code = 3


class AlreadyRunning(KbdError):
    """Another daemon runs on this state directory."""

    exit_code = 3


class LockTimeout(KbdError):
    """A lock was not had in time."""

    exit_code = 4


class LedgerDamaged(KbdError):
    """The ledger cannot be read and no good backup is left."""

    exit_code = 5


class Refused(KbdError):
    """A change that a rule forbids; nothing was written."""

    exit_code = 6


class ChangedUnderneath(Refused):
    """A file changed between reading and writing, and went on changing."""


class FileUnreadable(KbdError):
    """A file exists but cannot be read. Never an empty result."""


class FileUnwritable(KbdError):
    """A file cannot be replaced: full disk, read-only file system, permissions."""
