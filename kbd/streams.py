"""The standard streams of a process, which may be closed, full, or a pipe that nobody reads any more."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def fill_closed_streams() -> None:
    """Open the null device in place of each stream that was closed before the start (`kbd run <&- 2>&-`).

    Else the next file opened would get its number, and what a library writes to the number 2 would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above


def has_terminal() -> bool:
    """Tell whether the process belongs to a terminal; it no longer does once that was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def talk(text: str) -> None:
    """Print a line on stderr. Where nobody can hear it, what it is about goes on all the same."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def settle(stream: TextIO) -> None:
    """Write out what a stream still holds; what cannot be written goes nowhere.

    Python would try it again at its end, and then exit with 120.
    """
    try:
        stream.flush()
    except OSError:
        let_go(stream)


def let_go(stream: TextIO) -> None:
    """Let all that is still to be written go nowhere."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
