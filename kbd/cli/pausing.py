"""`kbd pause` and `kbd resume`."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from kbd.cli.output import emit
from kbd.cli.session import Session
from kbd.errors import UsageError
from kbd.store.pausing import Pause, begin_pause, end_pause

_SPAN = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?")


@click.command("pause")
@click.option("--for", "span", metavar="SPAN", help="How long, such as 2h, 30m or 1d12h; default: until resumed.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.pass_obj
def pause(session: Session, span: str | None, dry_run: bool) -> int:
    """Let kbd rest: nothing is read, written or faded. What agents write meanwhile is read afterwards."""
    until = session.real_now() + _length(span) if span is not None else None
    if not dry_run:
        begin_pause(session.state_dir, until)
    emit(f"{'would be paused' if dry_run else 'paused'} {Pause(until).words()}")
    return 0


@click.command("resume")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.pass_obj
def resume(session: Session, dry_run: bool) -> int:
    """End a pause."""
    if dry_run:
        emit("would end the pause")
    else:
        emit("resumed" if end_pause(session.state_dir) else "there was no pause")
    return 0


def _length(text: str) -> timedelta:
    found = _SPAN.fullmatch(text.strip().lower())
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not length:
        raise UsageError(f"--for: {text!r} is no span of time", hint="write 2h, 30m or 1d12h")
    return length
