"""What the next session should know: the ranked entries that fit a budget, in the words of their files."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date

from kbd.core import entries as markdown
from kbd.core import handout
from kbd.core.handout import Handed
from kbd.core.model import Entry, Relation
from kbd.core.rank import Ranked, Wanted, rank
from kbd.core.shelf import Candidate, Shelf
from kbd.core.tokens import estimate_tokens
from kbd.errors import FileUnreadable
from kbd.store.base_files import MAX_BYTES
from kbd.store.files import read_regular
from kbd.store.ledger.lessons import EntryRow

MISFITS = 20
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
class Context:
    """What is handed out, best first, and what is not. `tokens` is the size of the text."""

    chosen: tuple[Chosen, ...]
    suppressed: tuple[Suppressed, ...]
    tokens: int

    def text(self) -> str:
        """Return the Markdown for an agent; "" for nothing."""
        return handout.context([one.handed for one in self.chosen])


def shelves(books: Iterable[Book]) -> list[Shelf]:
    """Return the bases as ranking sees them."""
    return [Shelf.of(map(_candidate, book.rows), book.relations) for book in books]


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


def assemble(books: Sequence[Book], request: Request, today: date, reader: Reader) -> Context:
    """Return what to hand out. Reads the files of the entries chosen and changes nothing, no counter either."""
    ready = shelves(books)
    ranking = rank(ready, request.wanted, today)
    conflicts = {key: others for shelf in ready for key, others in shelf.conflicts.items()}
    known = {row.id: (book.base, row) for book in books for row in book.rows}
    filling = _Filling(request, _Words(reader, [row for book in books for row in book.rows]))
    for place, one in enumerate(ranking.ranked, 1):
        base, row = known[one.candidate.key]
        filling.offer(base, row, one, place, conflicts.get(row.id, ()))
    left = [Suppressed(*known[one.candidate.key], one.reason) for one in ranking.left]
    return Context(tuple(filling.chosen), (*filling.suppressed, *left), filling.tokens if filling.chosen else 0)


def standing(book: Book, today: date, row: EntryRow) -> dict[str, object] | None:
    """Return the place of an entry in its base when nothing special is asked for, and the terms of its score.

    None if it is not handed out at all.
    """
    ranking = rank(shelves([book]), Wanted(), today)
    for place, one in enumerate(ranking.ranked, 1):
        if one.candidate.key == row.id:
            terms = {name: round(value, 6) for name, value in asdict(one.score).items()}
            return {"place": place, "of": len(ranking.ranked), "score": one.score.total, "terms": terms}
    return None


@dataclass(slots=True)
class _Filling:
    """A budget being filled in the order of rank."""

    request: Request
    words: _Words
    chosen: list[Chosen] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    tokens: int = 0
    chars: int = 0
    misfits: int = 0

    def offer(self, base: str, row: EntryRow, one: Ranked, place: int, conflicts: Iterable[Candidate]) -> None:
        if self.request.only_asked_for and not one.is_asked_for:
            self.suppressed.append(Suppressed(base, row, "not asked for"))
            return
        if self.misfits >= MISFITS:
            self.suppressed.append(Suppressed(base, row, f"place {place}, after the budget was spent"))
            return
        text = self.words.of(row)
        if not text:
            self.suppressed.append(Suppressed(base, row, "no longer found in its file"))
            return
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
            self.misfits += 1
            reason = f"place {one.place}, does not fit: {one.tokens} tokens, {max(left, 0)} left"
            self.suppressed.append(Suppressed(one.base, one.row, reason))
            return
        self.misfits = 0
        self.tokens += one.tokens
        self.chars += chars
        self.chosen.append(one)


def _json_chars(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2


class _Words:
    """The words of entries, read from their files as they stand now."""

    def __init__(self, reader: Reader, rows: Iterable[EntryRow]) -> None:
        self._reader = reader
        self._files: dict[str, list[bytes]] = {}
        self._whole: dict[str, dict[str, tuple[bytes, Entry]]] = {}
        self._begins: dict[str, list[int]] = {}
        for row in rows:
            self._begins.setdefault(row.file, []).append(row.line)
        for begins in self._begins.values():
            begins.sort()

    def of(self, row: EntryRow) -> str:
        """Return an entry's text; "" if it is no longer there or its file cannot be read."""
        found = self._at_its_line(row) or self._anywhere(row)
        return handout.entry_text(*found, row.handle, row.type, self._reader.marker) if found else ""

    def _at_its_line(self, row: EntryRow) -> tuple[bytes, Entry] | None:
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
