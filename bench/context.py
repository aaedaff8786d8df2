"""How long `kbd context` takes over 10,000 entries: `python bench/context.py` writes `bench/record/context.json`.

The answer is checked first: the right entry comes first, the order is the same with the entries in another order, and
the budget is kept. Then each case is timed, after the entries and relations were loaded. `rank and read` is all of
`assemble`: rank, read the words of the chosen entries from a 2 MB file, fill the budget; the other rows are ranking
alone. Times are those of the processor, so that a busy machine says the same as an idle one.
"""

from __future__ import annotations

import json
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from bench.synthetic import Writer
from kbd.core.handles import handle
from kbd.core.model import Relation, State
from kbd.core.normal import normalise
from kbd.core.rank import Wanted, rank
from kbd.core.tokens import estimate_tokens
from kbd.service.context import Book, Library, Reader, Request, assemble
from kbd.store.ledger.lessons import EntryRow

ENTRIES, RELATIONS_EACH, FILES, ROUNDS = 10_000, 2, 400, 15
LIMIT_MS = 100.0
TODAY = date(2026, 6, 11)
TYPES = ("pitfall", "guideline", "decision", "process", "model")
_RECORD = Path(__file__).resolve().parent / "record" / "context.json"


def main() -> int:
    """Check, time and record; 1 if a case takes 100 ms or more."""
    with tempfile.TemporaryDirectory() as folder:
        book = shelf(Path(folder))
        check(book)
        results = [timed(name, run) for name, run in cases(book).items()]
    record = {
        "environment": environment(),
        "entries": ENTRIES,
        "relations": ENTRIES * RELATIONS_EACH,
        "results": results,
    }
    _RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    for row in results:
        print(f"{row['case']:<40} {row['median_ms']:>8} ms  (spread {row['iqr_ms']}, best {row['best_ms']})")
    return int(any(row["median_ms"] >= LIMIT_MS for row in results))


def shelf(folder: Path) -> Book:
    """Return a base of 10,000 entries in one file, each applying to two of 400 source files."""
    writer, chance = Writer(0.3), random.Random(7)
    titles = writer.titles(ENTRIES)
    path = folder / "lessons.md"
    bodies = [writer.text(titles, 180, cited=0.0).replace("\n", " ").strip() for _ in titles]
    path.write_text(
        "".join(
            f"- [{TYPES[n % 5]}] **{title}** — {body} (2026-03-01)\n"
            for n, (title, body) in enumerate(zip(titles, bodies, strict=True))
        ),
        "utf-8",
    )
    rows = [row(n, title, body, str(path), chance) for n, (title, body) in enumerate(zip(titles, bodies, strict=True))]
    relations = [
        Relation(
            title, "applies_to", f"src/part{f % 20}/module{f}.py", None, TODAY - timedelta(days=chance.randrange(400))
        )
        for title in titles
        for f in chance.sample(range(FILES), RELATIONS_EACH)
    ]
    return Book("lessons", rows, relations)


def row(n: int, title: str, body: str, path: str, chance: random.Random) -> EntryRow:
    """Return an entry as the ledger gives it."""
    given: dict[str, Any] = dict.fromkeys(EntryRow.__slots__)
    given |= {"id": n + 1, "title": title, "norm": normalise(title), "body": normalise(body), "handle": handle(title)}
    given |= {"type": TYPES[n % 5], "file": path, "line": n + 1, "state": State.ACTIVE, "ref": chance.randrange(20)}
    given |= {"last": TODAY - timedelta(days=chance.randrange(300)), "created": date(2026, 3, 1), "citations": n % 3}
    return EntryRow(**given)


def check(book: Book) -> None:
    """Assert that what is timed is right."""
    wanted = Wanted(files=(("src/part7/module7.py",),), query=book.rows[4321].title)
    ranking = rank(Library.of([book]).shelves, wanted, TODAY).ranked
    assert ranking[0].score.relation == 8.0
    asked = rank(Library.of([book]).shelves, Wanted(query=book.rows[4321].title), TODAY).ranked
    assert 4322 in {one.candidate.key for one in asked[:20]}
    turned = Book(book.base, list(reversed(book.rows)), list(reversed(list(book.relations))))
    assert [one.candidate.key for one in rank(Library.of([turned]).shelves, wanted, TODAY).ranked] == [
        one.candidate.key for one in ranking
    ]
    told = assemble(Library.of([book]), Request(wanted, 2000), TODAY, Reader(frozenset(TYPES), "⚠️"))
    assert len(told.chosen) > 5
    assert estimate_tokens(told.text()) <= 2000


def cases(book: Book) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""
    library = Library.of([book])
    ready = library.shelves
    file = ("src/part7/module7.py", "/home/dev/project/src/part7/module7.py")
    words = " ".join(book.rows[n].title for n in range(0, 90, 10))
    common = "cache lock retry timeout backoff socket thread commit build release deploy schema index parser"
    reader = Reader(frozenset(TYPES), "⚠️")
    return {
        "rank, nothing asked": lambda: rank(ready, Wanted(), TODAY),
        "rank, one file": lambda: rank(ready, Wanted(files=(file,)), TODAY),
        "rank, file and a query of common words": lambda: rank(ready, Wanted(files=(file,), query=common), TODAY),
        "rank, a query of 24 words": lambda: rank(ready, Wanted(query=words), TODAY),
        "rank and read, one file and a query": lambda: assemble(
            library, Request(Wanted(files=(file,), query=common), 2000), TODAY, reader
        ),
    }


def timed(name: str, run: Callable[[], object]) -> dict[str, object]:
    """Return median and spread of a case in milliseconds."""
    run()
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        run()
        times.append((time.process_time() - started) * 1e3)
    quarters = statistics.quantiles(times, n=4)
    median, spread = round(statistics.median(times), 1), round(quarters[2] - quarters[0], 1)
    return {"case": name, "median_ms": median, "iqr_ms": spread, "best_ms": round(min(times), 1)}


def environment() -> dict[str, str]:
    """Return what the numbers depend on."""
    return {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}


if __name__ == "__main__":
    sys.exit(main())
