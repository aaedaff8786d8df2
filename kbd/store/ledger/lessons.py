"""The ledger's rows of bases, knowledge files and entries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from kbd.core.model import Pair, Problem, State
from kbd.core.normal import ECHO_CHARS
from kbd.store.ledger.counts import counted_references


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as the ledger knows it; the fields are the columns (see schema.py), days as dates."""

    id: int
    base: int
    title: str
    norm: str
    section: str
    handle: str
    type: str
    type_source: str
    file: str
    line: int
    place: int
    body: str
    body_sha: str
    ident: str | None
    state: State
    created: date | None
    first_seen: date
    base_ref: int
    covers: date | None
    adjust: int
    last_floor: date | None
    wrote: Pair | None
    wrote_state: State | None
    wrote_marker: bool | None
    due: Pair | None
    due_state: State | None
    due_marker: bool | None
    file_ref: int | None
    file_last: date | None
    file_state: State | None
    file_marker: bool
    bad_date: bool
    dormant_since: date | None
    archived_since: date | None
    active_since: date | None
    pinned: bool
    fall_refs: int
    moving: str | None
    gone_on: date | None
    unmatchable: bool
    ref: int
    last: date | None
    citations: int
    sessions: int
    listed: int
    last_line: int = 0

    def differs_from_file(self, *, markers: bool) -> bool:
        """Tell whether the file says something else than the ledger wants, or is silent where there is something.

        `kbd.store.ledger.due` asks the same of all entries.
        """
        if self.file_ref is None:
            return self.pair != Pair(0, None) or self.state is not State.ACTIVE
        state = self.file_state or State.ACTIVE
        marker = markers and self.state is State.DORMANT
        misses_marker = self.state is not State.ARCHIVED and markers and self.file_marker is not marker
        return Pair(self.file_ref, self.file_last) != self.pair or state is not self.state or misses_marker

    @property
    def move_begun(self) -> bool:
        """Tell whether its block may stand in both files: its copy was to be written, or was, in the new state."""
        return self.moving is not None and self.state in (self.wrote_state, self.due_state)

    @property
    def pair(self) -> Pair:
        """The pair the ledger wants in the file."""
        return Pair(self.ref, self.last)


def day(text: str | None) -> date | None:
    """Read a day column."""
    return None if text is None else date.fromisoformat(text)


def _pair(ref: int | None, last: str | None) -> Pair | None:
    return None if ref is None else Pair(ref, day(last))


_STATES: dict[str, State | None] = {"": None} | {state.value: state for state in State}
_READERS: dict[str, Callable[[Any], object]] = {
    "State": _STATES.__getitem__,
    "State | None": _STATES.__getitem__,
    "date": date.fromisoformat,
    "date | None": date.fromisoformat,
    "bool": bool,
    "bool | None": bool,
}
# A row is read by position, in the order of the fields: ten thousand rows by name take five times as long.
_FIELDS = [str(field.name) for field in fields(EntryRow)]
_READ = [(at, _READERS[str(field.type)]) for at, field in enumerate(fields(EntryRow)) if str(field.type) in _READERS]
_WROTE_AT, _DUE_AT = _FIELDS.index("wrote"), _FIELDS.index("due")
_COLUMNS = ", ".join(f"e.{name}_ref" if name in ("wrote", "due") else f"e.{name}" for name in _FIELDS)
_ENTRIES = f"SELECT {_COLUMNS}, e.wrote_last, e.due_last FROM entries e"  # noqa: S608 - names are ours


def _entry(r: sqlite3.Row) -> EntryRow:
    *values, wrote_last, due_last = r
    for at, read in _READ:
        if (value := values[at]) is not None:
            values[at] = read(value)
    values[_WROTE_AT], values[_DUE_AT] = _pair(values[_WROTE_AT], wrote_last), _pair(values[_DUE_AT], due_last)
    return EntryRow(*values)


def entries_of(db: sqlite3.Connection, base: int, *, gone: bool = False) -> list[EntryRow]:
    """Return a base's entries in the order of file and place; those gone from the files only on demand."""
    where = "" if gone else "AND e.gone_on IS NULL"
    rows = db.execute(f"{_ENTRIES} WHERE e.base=? {where} ORDER BY e.file, e.place, e.id", (base,))
    return [_entry(r) for r in rows]


def entries_where(db: sqlite3.Connection, rest: str, parameters: Mapping[str, object]) -> list[EntryRow]:
    """Return entries (`e`) by the rest of a query: joins, conditions, order."""
    return [_entry(r) for r in db.execute(f"{_ENTRIES} {rest}", parameters)]


def entries_on_the_way(db: sqlite3.Connection, base: int) -> list[EntryRow]:
    """Return a base's entries whose block is on its way to or from an archive, in order of file and place."""
    rows = db.execute(
        f"{_ENTRIES} WHERE e.base=? AND e.moving IS NOT NULL AND e.gone_on IS NULL ORDER BY e.file, e.place, e.id",
        (base,),
    )
    return [_entry(r) for r in rows]


def entry_row(db: sqlite3.Connection, entry: int) -> EntryRow:
    """Return one entry; KeyError if there is none."""
    row = db.execute(f"{_ENTRIES} WHERE e.id=?", (entry,)).fetchone()
    if row is None:
        raise KeyError(entry)
    return _entry(row)


def entries_of_file(db: sqlite3.Connection, path: str) -> list[EntryRow]:
    """Return the entries that stand in a file, in order; not those of another base that once had it."""
    rows = db.execute(
        f"{_ENTRIES} JOIN notes n ON n.path=e.file AND n.base=e.base "
        "WHERE e.file=? AND e.gone_on IS NULL ORDER BY e.place, e.id",
        (path,),
    )
    return [_entry(r) for r in rows]


def release_file(db: sqlite3.Connection, path: str, base: int, today: date) -> None:
    """Let entries of other bases go that stood in a file which is this base's now."""
    db.execute(
        "UPDATE entries SET gone_on=?, moving=NULL WHERE file=? AND base!=? AND gone_on IS NULL",
        (today.isoformat(), path, base),
    )


def update_entry(db: sqlite3.Connection, entry: int, **columns: object) -> None:
    """Set columns of an entry; states and dates are written as text."""
    names = ", ".join(f"{name}=?" for name in columns)
    db.execute(f"UPDATE entries SET {names} WHERE id=?", (*map(column, columns.values()), entry))  # noqa: S608 - names are ours


def set_state(db: sqlite3.Connection, entry: int, state: State, today: date, *, archive: bool) -> None:
    """Change the state of an entry; its block is on its way from now on if it may stand in the wrong file.

    A person's decision: idle counts anew for what is active, and what is dormant has served its time. Only citations
    counted from now on wake it.

    Args:
        db: within a transaction.
        entry: its id.
        state: the new state.
        today: the day.
        archive: its block stands in an archive.
    """
    row = entry_row(db, entry)
    archived = state is State.ARCHIVED
    on_the_way = row.moving is not None or archive is not archived
    columns: dict[str, object] = {
        "state": state,
        "dormant_since": None,
        "archived_since": today if archived else None,
        "moving": ("archive" if archived else "restore") if on_the_way else None,
    }
    if state is State.ACTIVE:
        columns["active_since"] = today
    else:
        columns["fall_refs"] = counted_references(db, entry)
    update_entry(db, entry, **columns)


def insert_entry(db: sqlite3.Connection, **columns: object) -> int:
    """Add an entry and return its id."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    row = db.execute(
        f"INSERT INTO entries({names}) VALUES ({marks}) RETURNING id",  # noqa: S608 - names are ours
        tuple(map(column, columns.values())),
    ).fetchone()
    return int(row[0])


def column(value: object) -> object:
    """Turn a value into what a column holds."""
    if isinstance(value, State):
        return value.value
    return value.isoformat() if isinstance(value, date) else value


def confirm_written(db: sqlite3.Connection, entry: int) -> None:
    """Note that the intended values stand in the file."""
    db.execute(
        "UPDATE entries SET wrote_ref=due_ref, wrote_last=due_last, wrote_state=due_state, wrote_marker=due_marker, "
        "due_ref=NULL, due_last=NULL, due_state=NULL, due_marker=NULL WHERE id=? AND due_ref IS NOT NULL",
        (entry,),
    )


def base_id(db: sqlite3.Connection, name: str) -> int:
    """Return the id of a base, made at first sight."""
    db.execute("INSERT OR IGNORE INTO bases(name) VALUES (?)", (name,))
    return int(db.execute("SELECT id FROM bases WHERE name=?", (name,)).fetchone()[0])


def add_pair(db: sqlite3.Connection, entry: int, pair: Pair) -> None:
    """Remember a pair that kbd wrote or took in."""
    db.execute(
        "INSERT OR IGNORE INTO pairs VALUES (?,?,?)", (entry, pair.ref, pair.last.isoformat() if pair.last else "")
    )


def pairs_of(db: sqlite3.Connection, entry: int) -> frozenset[Pair]:
    """Return all pairs kbd ever wrote or took in for an entry."""
    rows = db.execute("SELECT ref, last FROM pairs WHERE entry=?", (entry,))
    return frozenset(Pair(int(r[0]), day(r[1] or None)) for r in rows)


def add_pattern(db: sqlite3.Connection, entry: int, kind: str, text: str, earns_from: date | None) -> bool:
    """Let a text cite an entry from a day on; True if it is new. A pattern that had ended lives again."""
    row = db.execute(
        "SELECT id, until FROM patterns WHERE entry=? AND kind=? AND text=?", (entry, kind, text)
    ).fetchone()
    if row is None:
        db.execute(
            "INSERT INTO patterns(entry, kind, text, earns_from) VALUES (?,?,?,?)",
            (entry, kind, text, column(earns_from)),
        )
        return True
    if row["until"] is not None:
        db.execute("UPDATE patterns SET until=NULL WHERE id=?", (row["id"],))
    return False


ALIAS_DAYS = 90
"""For so long an old title, handle or id still cites its entry."""


def end_pattern(db: sqlite3.Connection, entry: int, kind: str, text: str, until: date) -> None:
    """Let a text cite an entry up to a day only."""
    db.execute(
        "UPDATE patterns SET until=? WHERE entry=? AND kind=? AND text=? AND until IS NULL",
        (until.isoformat(), entry, kind, text),
    )


def former_titles(db: sqlite3.Connection, base: int, today: date) -> dict[int, list[str]]:
    """Return by entry of a base the normalised titles that it had before and that still cite it, the newest first."""
    found: dict[int, list[str]] = {}
    for entry, title in db.execute(
        "SELECT p.entry, p.text FROM patterns p JOIN entries e ON e.id=p.entry WHERE e.base=? AND e.file!='' "
        "AND p.kind='title' AND p.until>=? ORDER BY p.until DESC, p.id DESC",
        (base, today.isoformat()),
    ):
        found.setdefault(entry, []).append(title)
    return found


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A pattern with the entry behind it, as the matcher's lexicon needs it."""

    id: int
    entry: int
    base: int
    kind: str
    text: str
    body: str
    earlier: tuple[str, ...] = ()


def patterns_in_use(db: sqlite3.Connection, today: date) -> list[PatternRow]:
    """Return the patterns of all entries that stand in a file, aliases up to their end."""
    rows = db.execute(
        "SELECT p.id, p.entry, e.base, p.kind, p.text, e.body FROM patterns p JOIN entries e ON e.id=p.entry "
        "WHERE e.gone_on IS NULL AND (p.until IS NULL OR p.until>=?) ORDER BY p.id",
        (today.isoformat(),),
    )
    earlier: dict[int, tuple[str, ...]] = {}
    for entry, opening in db.execute(
        "SELECT DISTINCT b.entry, b.opening FROM bodies b JOIN entries e ON e.id=b.entry "
        # A shorter one may be a wording that was still being written: any text that begins so would be its echo.
        "WHERE length(b.opening)>=?1 AND b.opening!=substr(e.body, 1, ?1) ORDER BY b.entry, b.opening",
        (ECHO_CHARS,),
    ):
        earlier[entry] = (*earlier.get(entry, ()), opening)
    return [
        PatternRow(r["id"], r["entry"], r["base"], r["kind"], r["text"], r["body"], earlier.get(r["entry"], ()))
        for r in rows
    ]


def live_counts(db: sqlite3.Connection) -> dict[int, int]:
    """Return the number of live (active and dormant) entries by base."""
    rows = db.execute("SELECT base, count(*) FROM entries WHERE gone_on IS NULL AND state!='archived' GROUP BY base")
    return {int(r[0]): int(r[1]) for r in rows}


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A knowledge file as last synced."""

    path: str
    base: int
    archive: bool
    sha: str
    size: int
    mtime_ns: int
    ino: int
    wrote_at: float | None
    wrote_mtime_ns: int | None


def notes_of(db: sqlite3.Connection, base: int) -> dict[str, NoteRow]:
    """Return the knowledge files of a base as last synced, by path."""
    rows = db.execute(
        "SELECT path, base, archive, sha, size, mtime_ns, ino, wrote_at, wrote_mtime_ns FROM notes WHERE base=?",
        (base,),
    )
    return {r["path"]: NoteRow(r["path"], r["base"], bool(r["archive"]), *tuple(r)[3:]) for r in rows}


def save_note(db: sqlite3.Connection, note: NoteRow, tokens: int, problems: Sequence[Problem]) -> None:
    """Store what was synced from a knowledge file."""
    told = json.dumps([[p.code, p.where, p.what, p.hint] for p in problems], ensure_ascii=False)
    text = told.encode("utf-8", "replace").decode()  # a problem quotes the file, whose bytes may be anything
    db.execute(
        "INSERT INTO notes VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(path) DO UPDATE SET base=excluded.base, "
        "archive=excluded.archive, sha=excluded.sha, size=excluded.size, mtime_ns=excluded.mtime_ns, ino=excluded.ino, "
        "tokens=excluded.tokens, problems=excluded.problems",
        (
            note.path,
            note.base,
            note.archive,
            note.sha,
            note.size,
            note.mtime_ns,
            note.ino,
            tokens,
            text,
            note.wrote_at,
            note.wrote_mtime_ns,
        ),
    )
