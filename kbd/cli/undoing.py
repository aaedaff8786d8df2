"""`kbd undo`: taking back what kbd wrote into a file, and holding to that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import unified_diff

import click

from kbd.cli.changing import DRY_RUN, NEVER_RUN, opened, reader_of
from kbd.cli.history import entry_id, minute
from kbd.cli.output import counted, emit, emit_json, safe, say
from kbd.cli.session import Session
from kbd.errors import UsageError
from kbd.service.undoing import Reverted, Undoer, about
from kbd.store.ledger import Ledger, undo
from kbd.store.ledger.undo import Act
from kbd.store.locks import Locks, running_pid


@click.command("undo")
@click.argument("name", metavar="[FILE|TITLE]", required=False)
@click.option("--list", "list_only", is_flag=True, help="Only show what can be taken back, newest first.")
@DRY_RUN
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def undo_write(session: Session, name: str | None, list_only: bool, dry_run: bool, as_json: bool) -> int:
    """Take back the newest write of kbd: all of it, that into a file, or what it wrote about an entry.

    Ten writes of counters are kept for each file, thirty days of what else kbd did. It counts as your decision: kbd
    does not write the same again.
    """
    with session.reading() as ledger:
        if ledger is None:
            raise UsageError(NEVER_RUN)
        path, entry = _meant(session, ledger, name)
        found = [about(act, entry) if entry else act for act in undo.acts(ledger.db, path=path, entry=entry)]
        if list_only:
            _show_list(ledger, found, as_json=as_json)
            return 0
        if not found:
            raise UsageError("there is nothing to undo" + (f" in {name!r}" if name else ""), hint="`kbd undo --list`")
        act = found[0]
        if dry_run:
            undoer = _undoer(session, ledger, Locks(session.state_dir))
            _tell(act, undoer.preview(act, session.now()), "would be undone", as_json=as_json)
            return 0
    _tell(act, _undo(session, act), "undone", as_json=as_json)
    return 0


def _meant(session: Session, ledger: Ledger, name: str | None) -> tuple[str | None, int | None]:
    """Return the file or the entry that a name means: a file that kbd wrote to comes first."""
    if name is None:
        return None, None
    known = {row[0] for row in ledger.db.execute("SELECT DISTINCT path FROM undo")}
    given = {os.path.abspath(name), os.path.realpath(name)}
    path = next((path for path in known if path in given or os.path.realpath(path) in given), None)
    if path is None and (os.path.lexists(name) or os.sep in name):
        raise UsageError(f"kbd has written nothing into {name} that it could take back", hint="`kbd undo --list`")
    return (path, None) if path is not None else (None, entry_id(session, ledger, name))


def _undoer(session: Session, ledger: Ledger, locks: Locks) -> Undoer:
    config = session.config
    sidecars, relations = config.write.counters == "sidecar", {base.relations for base in config.bases}
    return Undoer(ledger, locks, reader_of(session).parse, bool(config.decay.marker), sidecars, relations)


def _undo(session: Session, act: Act) -> list[Reverted]:
    with opened(session) as (engine, clock):
        frame = engine.frame
        undoer = _undoer(session, frame.ledger, frame.locks)
        paths = {write.path for write in act.writes}
        rows = frame.ledger.db.execute("SELECT path, base FROM notes")
        known = {row["base"] for row in rows if row["path"] in paths}
        specs = [spec for base, spec in frame.bases() if spec.id in known or base.relations in paths]
        if not specs:
            raise UsageError(f"{act.writes[0].path} belongs to no base now", hint="add it to the configuration")
        reverted = undoer.undo(act, lambda files: engine.writer.resync(specs[0], files, clock), clock.now)
        if any(one.after is None for one in reverted) and running_pid(session.state_dir) is None:
            engine.sync(clock)  # what stood in a file that went is gone
        return reverted


def _tell(act: Act, reverted: list[Reverted], what: str, *, as_json: bool) -> None:
    if as_json:
        emit_json({"act": _as_json(act), "done": what})
        return
    for one in reverted:
        for line in _diff(one):
            emit(safe(line))
    paths = (one.path + (" (the file goes)" if one.after is None else "") for one in reverted)
    say(f"{act.kind} of {minute(act.at)} {what}: {', '.join(paths)}")


def _diff(one: Reverted) -> Iterator[str]:
    before, after = (data.decode("utf-8", "replace").split("\n") for data in (one.before, one.after or b""))
    yield from unified_diff(before, after, one.path, one.path, lineterm="", n=0)


def _show_list(ledger: Ledger, found: list[Act], *, as_json: bool) -> None:
    if as_json:
        emit_json({"acts": [_as_json(act) for act in found]})
        return
    for act in found:
        titles = [r[0] for n in act.entries for r in ledger.db.execute("SELECT title FROM entries WHERE id=?", (n,))]
        named = f'"{titles[0]}"' if len(titles) == 1 else counted(len(titles), "entry")
        emit(safe(f"{minute(act.at)} {act.kind:9} {named}  {', '.join(write.path for write in act.writes)}"))
    if not found:
        say("there is nothing to undo")


def _as_json(act: Act) -> dict[str, object]:
    return {"at": act.at, "kind": act.kind, "files": [write.path for write in act.writes], "entries": len(act.entries)}
