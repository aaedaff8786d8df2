"""Editors that have a file open which a command replaces: what they write late is saved, and said on stderr."""

from __future__ import annotations

from kbd.cli.output import say
from kbd.store.displaced import DISPLACED


def wait_for_editors() -> None:
    """Wait a few seconds for those who still write into what was replaced, and say what was saved, or is lost."""
    lost: list[tuple[str, str]] = []
    try:
        lost = DISPLACED.finish()
    finally:
        for saved in DISPLACED.take_saved():
            say(f"kbd: {saved.path}: an editor wrote over kbd; its text is in {saved.copy}; merge it by hand")
    for path, what in lost:
        say(f"kbd: {path}: {what}")
