"""What the next session should know: the ranked entries that fit a budget, in the words of their files."""

from __future__ import annotations

import bisect
import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from kbd.core import entries as markdown
from kbd.core import handout
from kbd.core.handout import Handed
from kbd.core.model import Entry, Relation
from kbd.core.rank import Left, Ranked, Ranking, Wanted, rank
from kbd.core.shelf import Candidate, Shelf
from kbd.core.tokens import estimate_tokens
from kbd.errors import FileUnreadable
from kbd.store.base_files import MAX_BYTES
from kbd.store.files import read_regular
from kbd.store.ledger.lessons import EntryRow

MISFITS = 10
"""After so many entries in a row that do not fit, the budget counts as spent."""


@dataclass(frozen=True, slots=True)
class Book:
    """A base with all its entries and its relations."""

    base: str
    rows: Sequence[EntryRow]
    relations: Iterable[Relation]


@dataclass(frozen=True, slots=True)
class Reader:
    """How knowledge files are read: known entry types and the dormancy marker ("" for none)."""

    types: frozenset[str]
    marker: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, and how much of it fits.

    Attributes:
        wanted: files, types and query.
        budget: tokens, as estimated.
        max_chars: characters of the whole as a JSON string; None for no limit.
        only_asked_for: nothing but entries that a file or the query calls for.
    """

    wanted: Wanted
    budget: int
    max_chars: int | None = None
    only_asked_for: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """An entry that is handed out; `place` is its rank from 1 on."""

    base: str
    row: EntryRow
    ranked: Ranked
    place: int
    handed: Handed
    tokens: int


@dataclass(frozen=True, slots=True)
class Suppressed:
    """An entry that is not handed out, and why."""

    base: str
    row: EntryRow
    reason: str


@dataclass(frozen=True, slots=True)
class Library:
    """Bases made ready for ranking; good for any number of questions, as long as nothing changes.

    Attributes:
        shelves: the bases as ranking sees them.
        known: entry id → base and row.
        conflicts: entry id → live entries that it conflicts with.
    """

    shelves: tuple[Shelf, ...]
    known: Mapping[int, tuple[str, EntryRow]]
    conflicts: Mapping[int, tuple[Candidate, ...]]

    @staticmethod
    def of(books: Iterable[Book]) -> Library:
        """Resolve the relations of the bases."""
        books = tuple(books)
        shelves = tuple(Shelf.of(map(_candidate, book.rows), book.relations) for book in books)
        conflicts = {key: others for shelf in shelves for key, others in shelf.conflicts.items()}
        return Library(shelves, {row.id: (book.base, row) for book in books for row in book.rows}, conflicts)


@dataclass(frozen=True, slots=True)
class Context:
    """What is handed out, best first, and what is not.

    Attributes:
        chosen: what is handed out.
        misfits: what was looked at and does not fit, or is not there.
        rest: what was not looked at, with the reason.
        left: what ranking leaves out.
        known: entry id → base and row.
        tokens: size of the text.
    """

    chosen: tuple[Chosen, ...] = ()
    misfits: tuple[Suppressed, ...] = ()
    rest: tuple[tuple[Ranked, str], ...] = ()
    left: tuple[Left, ...] = ()
    known: Mapping[int, tuple[str, EntryRow]] = field(default_factory=dict)
    tokens: int = 0

    def text(self) -> str:
        """Return the Markdown for an agent; "" for nothing."""
        return handout.context([one.handed for one in self.chosen])

    def suppressed(self) -> list[Suppressed]:
        """Return what is not handed out, by rank, and why; what ranking leaves out comes last."""
        rest = [Suppressed(*self.known[one.candidate.key], reason) for one, reason in self.rest]
        left = [Suppressed(*self.known[one.candidate.key], one.reason) for one in self.left]
        return [*self.misfits, *rest, *left]


def _candidate(row: EntryRow) -> Candidate:
    return Candidate(
        key=row.id,
        title=row.title,
        norm=row.norm,
        handle=row.handle,
        ident=row.ident,
        type=row.type,
        body=row.body,
        state=row.state,
        ref=row.ref,
        last=row.last,
        created=row.created,
        never_cited=row.citations == 0,
    )


def assemble(library: Library, request: Request, today: date, reader: Reader) -> Context:
    """Return what to hand out. Reads the files of the entries chosen and changes nothing, no counter either."""
    ranking = _ranking(library, request.wanted, today)
    filling = _Filling(request, library, _Words(reader, library))
    rest: list[tuple[Ranked, str]] = []
    for place, one in enumerate(ranking.ranked, 1):
        if request.only_asked_for and not one.is_asked_for:
            rest.append((one, "not asked for"))
        elif filling.misfits_in_a_row >= MISFITS:
            rest.append((one, "after the budget was spent"))
        else:
            filling.offer(one, place)
    tokens = filling.tokens if filling.chosen else 0
    return Context(tuple(filling.chosen), tuple(filling.misfits), tuple(rest), ranking.left, library.known, tokens)


def _ranking(library: Library, wanted: Wanted, today: date) -> Ranking:
    """Rank while the garbage collector leaves the loaded entries alone: looking at them takes a third of the time."""
    gc.freeze()
    try:
        return rank(library.shelves, wanted, today)
    finally:
        gc.unfreeze()


def standing(book: Book, today: date, row: EntryRow) -> dict[str, object] | None:
    """Return the place of an entry in its base when nothing special is asked for, and the terms of its score.

    None if it is not handed out at all.
    """
    ranking = rank(Library.of([book]).shelves, Wanted(), today)
    for place, one in enumerate(ranking.ranked, 1):
        if one.candidate.key == row.id:
            return {"place": place, "of": len(ranking.ranked), "score": one.total, "terms": terms(one)}
    return None


def terms(one: Ranked) -> dict[str, float]:
    """Return the terms of a score by name."""
    return {name: round(value, 6) for name, value in one.score._asdict().items()}


@dataclass(slots=True)
class _Filling:
    """A budget being filled in the order of rank."""

    request: Request
    library: Library
    words: _Words
    chosen: list[Chosen] = field(default_factory=list)
    misfits: list[Suppressed] = field(default_factory=list)
    misfits_in_a_row: int = 0
    tokens: int = 0
    chars: int = 0

    def offer(self, one: Ranked, place: int) -> None:
        base, row = self.library.known[one.candidate.key]
        text = self.words.of(row)
        if not text:
            self.misfits.append(Suppressed(base, row, "no longer found in its file"))
            return
        conflicts = self.library.conflicts.get(row.id, ())
        handed = Handed(row.handle, text, tuple((other.handle, other.title) for other in conflicts))
        self._fit(Chosen(base, row, one, place, handed, estimate_tokens(handout.item(handed) + "\n")))

    def _fit(self, one: Chosen) -> None:
        if not self.chosen:
            around = handout.context([Handed(one.row.handle, "")])
            self.tokens, self.chars = estimate_tokens(around), _json_chars(around)
        chars = _json_chars(handout.item(one.handed) + "\n")
        limit = self.request.max_chars
        left = self.request.budget - self.tokens
        if one.tokens > left or (limit is not None and self.chars + chars > limit):
            self.misfits_in_a_row += 1
            reason = f"does not fit: {one.tokens} tokens, {max(left, 0)} left"
            self.misfits.append(Suppressed(one.base, one.row, reason))
            return
        self.misfits_in_a_row = 0
        self.tokens += one.tokens
        self.chars += chars
        self.chosen.append(one)


def _json_chars(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


class _Words:
    """The words of entries, read from their files as they stand now."""

    def __init__(self, reader: Reader, library: Library) -> None:
        self._reader, self._library = reader, library
        self._files: dict[str, list[bytes]] = {}
        self._whole: dict[str, dict[str, tuple[bytes, Entry]]] = {}
        self._begins: dict[str, list[int]] = {}

    def of(self, row: EntryRow) -> str:
        """Return an entry's text; "" if it is no longer there or its file cannot be read."""
        found = self._at_its_line(row) or self._anywhere(row)
        return handout.entry_text(*found, row.handle, row.type, self._reader.marker) if found else ""

    def _at_its_line(self, row: EntryRow) -> tuple[bytes, Entry] | None:
        if row.file not in self._begins:
            lines = [other.line for _, other in self._library.known.values() if other.file == row.file]
            self._begins[row.file] = sorted(lines)
        begins = self._begins[row.file]
        later = bisect.bisect_right(begins, row.line)
        end = begins[later] - 1 if later < len(begins) else None
        chunk = b"\n".join(self._lines(row.file)[row.line - 1 : end])
        return next((found for norm, found in self._entries(chunk) if norm == row.norm), None)

    def _anywhere(self, row: EntryRow) -> tuple[bytes, Entry] | None:
        """Look through the whole file: it changed since the last pass."""
        if row.file not in self._whole:
            self._whole[row.file] = dict(self._entries(b"\n".join(self._lines(row.file))))
        return self._whole[row.file].get(row.norm)

    def _entries(self, data: bytes) -> Iterator[tuple[str, tuple[bytes, Entry]]]:
        for entry in markdown.parse(data, self._reader.types, self._reader.marker).entries:
            # As the ledger holds it: bytes that are no UTF-8 are replaced there.
            norm = entry.norm.encode("utf-8", "replace").decode()
            yield norm, (data[entry.block.start : entry.block.end], entry)

    def _lines(self, path: str) -> list[bytes]:
        if path not in self._files:
            try:
                self._files[path] = read_regular(path, MAX_BYTES).split(b"\n")
            except (FileNotFoundError, FileUnreadable):
                self._files[path] = []  # the entries stay away, each with its reason; `status` names the file
        return self._files[path]
