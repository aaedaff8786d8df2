"""Finding entries by their words, in whatever state they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbd.core.model import Relation
from kbd.core.normal import normalise
from kbd.core.query import begins_word, query_words
from kbd.core.relate import APPLIES_TO
from kbd.store.ledger.lessons import EntryRow

WEIGHTS = {"name": 8.0, "title": 4.0, "files": 2.0, "text": 1.0, "section": 0.5}


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that holds words of a query.

    Attributes:
        row: the entry.
        found_in: where: `name` (handle or id), `title`, `files` (that it applies to), `text`, `section`.
        words: how many of the query's words it holds.
        score: the weight of the places, added over the words.
    """

    row: EntryRow
    found_in: tuple[str, ...]
    words: int
    score: float


def search(rows: Sequence[EntryRow], relations: Iterable[Relation], query: str) -> list[Hit]:
    """Return the entries that hold all words of a query, best first; where none does, those that hold most of them.

    A word is found where a word begins with it. Equal scores go by references, then by handle.
    """
    words = query_words(query) or tuple(filter(None, [normalise(query)]))
    files = _files(relations)
    hits = [hit for row in rows if (hit := _hit(row, files, words)) is not None]
    most = max((hit.words for hit in hits), default=0)
    best = [hit for hit in hits if hit.words == most]
    return sorted(best, key=lambda hit: (-hit.score, -hit.row.ref, hit.row.handle, hit.row.id))


def _files(relations: Iterable[Relation]) -> dict[str, list[str]]:
    """Return the files that live relations name, by the normalised name of the entry they begin at."""
    files: dict[str, list[str]] = {}
    for relation in relations:
        if relation.p == APPLIES_TO and relation.e is None:
            files.setdefault(normalise(relation.s), []).append(normalise(relation.o))
    return files


def _hit(row: EntryRow, files: Mapping[str, Sequence[str]], words: Sequence[str]) -> Hit | None:
    names = [name.lower() for name in (row.handle, row.ident) if name]
    own = [path for name in {row.norm, *names} for path in files.get(name, ())]
    texts = {"title": row.norm, "files": " ".join(own), "text": row.body, "section": normalise(row.section)}
    found: dict[str, None] = {}
    held, score = 0, 0.0
    for word in words:
        places = [place for place, text in texts.items() if begins_word(text, word)]
        places += ["name"] if word.strip("[]") in names else []
        held += bool(places)
        score += max((WEIGHTS[place] for place in places), default=0.0)
        found.update(dict.fromkeys(places))
    return Hit(row, tuple(found), held, score) if held else None
