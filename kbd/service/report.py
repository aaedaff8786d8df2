"""What `list` and `show` say of entries: their numbers, the days to come, and where a number comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from kbd.core.decay import Forecast
from kbd.core.model import Relation, State
from kbd.core.normal import normalise
from kbd.errors import UsageError
from kbd.store.ledger import Ledger
from kbd.store.ledger.evidence import Event, Evidence, events_of, evidence_of
from kbd.store.ledger.lessons import EntryRow

CANDIDATES_SHOWN = 10
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a base with the days on which it falls if nobody cites it."""

    base: str
    entry: EntryRow
    forecast: Forecast

    def as_json(self) -> dict[str, object]:
        """Return the entry in the shape of `kbd list --json`."""
        row = self.entry
        return {
            "title": row.title,
            "handle": row.handle,
            "type": row.type,
            "type_source": row.type_source,
            "state": row.state.value,
            "ref": row.ref,
            "last": iso(row.last),
            "created": iso(row.created),
            "base": self.base,
            "file": row.file,
            "line": row.line,
            "section": row.section,
            "citations": row.citations,
            "sessions": row.sessions,
            "listed": row.listed,
            "dormant_on": iso(self.forecast.dormant_on),
            "archived_on": iso(self.forecast.archived_on),
        }


@dataclass(frozen=True, slots=True)
class Shown:
    """All there is to say of one entry.

    Attributes:
        listed: the entry.
        evidence: its citations, newest first, as many as were asked for.
        relations: those that it is an end of.
        history: what happened to it, oldest first.
        counted: references added to the number that its file had.
    """

    listed: Listed
    evidence: tuple[Evidence, ...]
    relations: tuple[Relation, ...]
    history: tuple[Event, ...]
    counted: int

    def as_json(self) -> dict[str, object]:
        """Return the shape of `kbd show --json`."""
        return self.listed.as_json() | {
            "evidence": [
                {
                    "session": e.session,
                    "record": e.record,
                    "at": e.at,
                    "path": e.path,
                    "offset": e.offset,
                    "snippet": e.snippet,
                    "class": e.author,
                    "files": list(e.files),
                }
                for e in self.evidence
            ],
            "relations": [
                {"s": r.s, "p": r.p, "o": r.o, "c": iso(r.c), "u": iso(r.u), "e": iso(r.e)} for r in self.relations
            ],
            "history": [{"at": e.at, "kind": e.kind, "title": e.title, "detail": e.detail} for e in self.history],
            "rank": None,
        }


def iso(day: date | None) -> str | None:
    """Return a day as `YYYY-MM-DD`."""
    return None if day is None else day.isoformat()


def list_base(base: str, rows: Iterable[EntryRow], forecasts: Mapping[int, Forecast]) -> list[Listed]:
    """Return the entries of a base in their order; one without a forecast has no days to come."""
    return [Listed(base, row, forecasts.get(row.id, Forecast(None, None))) for row in rows]


def select(listed: Iterable[Listed], *, archived: bool, type_: str | None, state: State | None) -> list[Listed]:
    """Return the entries of a type and a state; archived ones only if asked for, by either of the two."""
    return [
        one
        for one in listed
        if (archived or state is State.ARCHIVED or one.entry.state is not State.ARCHIVED)
        and (type_ is None or one.entry.type == type_)
        and (state is None or one.entry.state is state)
    ]


def find(listed: Sequence[Listed], query: str, former: Callable[[str], Iterable[int]]) -> Listed:
    """Return the one entry that a title, handle, id, place (`FILE:LINE`), former name or part of a title names.

    The first of these readings that finds something holds; a live entry goes before its archived namesake.

    Raises:
        UsageError: nothing is meant, or several; these are named.
    """
    query = query.strip().encode("utf-8", "replace").decode()  # bytes of an argument that are no UTF-8
    for found in _readings(listed, query, former):
        live = [one for one in found if one.entry.state is not State.ARCHIVED]
        meant = live if len(live) == 1 else found
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise _ambiguous(query, meant)
    raise UsageError(f"no entry is named {query!r}", hint="`kbd list --all` shows them all")


def _readings(listed: Sequence[Listed], query: str, former: Callable[[str], Iterable[int]]) -> Iterable[list[Listed]]:
    name = query.removeprefix("[").removesuffix("]")
    norm = normalise(query).rstrip(" .:")
    yield [one for one in listed if one.entry.handle == name.lower()]
    yield [one for one in listed if one.entry.ident == name]
    yield [one for one in listed if one.entry.norm in (norm, normalise(query))]
    yield _at_place(listed, query)
    numbers = {number for text in {name, name.lower(), norm} for number in former(text)}
    yield [one for one in listed if one.entry.id in numbers]
    if norm and name:
        yield [one for one in listed if (one.entry.ident or "").lower() == name.lower()]
        yield [one for one in listed if one.entry.norm.startswith(norm) or one.entry.handle.startswith(name.lower())]
        yield [one for one in listed if norm in one.entry.norm]


def _at_place(listed: Sequence[Listed], query: str) -> list[Listed]:
    place = _PLACE.fullmatch(query)
    if place is None:
        return []
    end = "/" + place["file"].lstrip("/")
    return [one for one in listed if one.entry.line == int(place["line"]) and one.entry.file.endswith(end)]


def _ambiguous(query: str, found: Sequence[Listed]) -> UsageError:
    lines = [f"  {one.entry.handle}  {one.entry.file}:{one.entry.line}  {one.entry.title}" for one in found]
    more = [f"  … {len(lines) - CANDIDATES_SHOWN} more"] if len(lines) > CANDIDATES_SHOWN else []
    what = f"{query!r} may be any of {len(found)} entries; give the handle, or FILE:LINE"
    return UsageError("\n".join([what, *lines[:CANDIDATES_SHOWN], *more]))


def show(ledger: Ledger, listed: Listed, relations: Iterable[Relation], limit: int | None) -> Shown:
    """Return all there is to say of an entry, with at most `limit` pieces of evidence (None: all)."""
    row = listed.entry
    names = {row.norm, row.handle, row.ident}
    mine = tuple(r for r in relations if not names.isdisjoint((r.s, r.o, normalise(r.s), normalise(r.o))))
    counted = ledger.db.execute("SELECT count(*) FROM refs WHERE entry=? AND added=1", (row.id,)).fetchone()[0]
    evidence = evidence_of(ledger.db, row.id, limit)
    return Shown(listed, tuple(evidence), mine, tuple(events_of(ledger.db, row.id)), int(counted))


def origin(row: EntryRow, counted: int) -> str:
    """Say in words what an entry's number is made of: `ref 12 = 7 found in the file + 5 references`.

    Args:
        row: the entry.
        counted: references added to the number found.
    """
    terms = []
    if row.base_ref or row.covers:
        covered = f" (covers up to {row.covers})" if row.covers else ""
        terms.append((row.base_ref, f"found in the file{covered}"))
    if row.adjust:
        terms.append((row.adjust, "set by hand"))
    if counted or not terms:
        terms.append((counted, "reference" if counted == 1 else "references"))
    first, *others = terms
    text = f"{first[0]} {first[1]}" + "".join(f" {'-' if n < 0 else '+'} {abs(n)} {what}" for n, what in others)
    floor = " (never below 0)" if sum(number for number, _ in terms) < 0 else ""
    return f"ref {row.ref} = {text}{floor}"


def pending(row: EntryRow, *, markers: bool) -> str:
    """Name the difference between the ledger and the file: `file says 11, write pending`; "" if there is none."""
    if not row.differs_from_file(markers=markers):
        return ""
    if row.file_ref is None:
        return "the file has no number yet, write pending"
    differences = []
    if row.file_ref != row.ref:
        differences.append(str(row.file_ref))
    if row.file_last != row.last:
        differences.append(f"last {row.file_last or 'none'}")
    if (row.file_state or State.ACTIVE) is not row.state:
        differences.append((row.file_state or State.ACTIVE).value)
    return f"file says {', '.join(differences) or 'another marker'}, write pending"
