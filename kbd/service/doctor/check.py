"""What a check says: fine, worth knowing, or a finding with its remedy."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """How a check went; only a finding makes `kbd doctor` leave with 1."""

    OK = "ok"
    NOTE = "note"
    FINDING = "finding"


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: stable name of what is checked, such as `ledger`.
        verdict: how it went.
        where: file or object concerned; may be empty.
        what: one clause.
        remedy: what to do; "" if nothing.
    """

    name: str
    verdict: Verdict
    where: str
    what: str
    remedy: str = ""


def fine(name: str, where: str, what: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, Verdict.OK, where, what)


def note(name: str, where: str, what: str, remedy: str = "") -> Check:
    """Return what is worth knowing and no fault."""
    return Check(name, Verdict.NOTE, where, what, remedy)


def finding(name: str, where: str, what: str, remedy: str) -> Check:
    """Return a fault."""
    return Check(name, Verdict.FINDING, where, what, remedy)
