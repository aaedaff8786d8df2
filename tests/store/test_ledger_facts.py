"""Credit: the earliest holder, whatever the order of finding; blocks that grow; what counts."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbd.core.model import Pair, State
from kbd.store.ledger import Ledger, lessons, open_ledger
from kbd.store.ledger.counts import recount
from kbd.store.ledger.facts import BlockFact, Holder, MentionFact, hold_authorship, hold_block, hold_message, key_of
from kbd.store.ledger.growth import grow_relations

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path):
    opened = open_ledger(tmp_path, NOW)
    yield opened
    opened.close()


def add_entry(ledger: Ledger, *, earns_from: date | None = None, covers: date | None = None, ref: int = 0) -> int:
    base = lessons.base_id(ledger.db, "lessons")
    entry = lessons.insert_entry(
        ledger.db, base=base, title="T", norm="t", section="", handle="k-000000", type="guideline", type_source="tag",
        file="/kb/l.md", line=1, place=0, state=State.ACTIVE, first_seen=NOW.date(), base_ref=ref, covers=covers,
    )  # fmt: skip
    lessons.add_pattern(ledger.db, entry, "title", "t", earns_from)
    return entry


def holder(session: str, at: datetime, file: int = 1, birth_ns: int | None = None) -> Holder:
    return Holder(session, at, False, file, birth_ns, f"/t/{file}", None, "r", 0)


def cite(
    ledger: Ledger,
    entry: int,
    key: str,
    held: Holder,
    *,
    listed: bool = False,
    words: str = "w",
    files: tuple[str, ...] = (),
) -> int:
    pattern = ledger.db.execute("SELECT id FROM patterns WHERE entry=?", (entry,)).fetchone()[0]
    message = hold_message(ledger.db, key_of(key), 1, held)
    mention = MentionFact(pattern, entry, listed, 0, 5, words.encode(), "snippet", files)
    block = BlockFact(key_of(key, words), "agent_text", len(words), len(words), words.encode(), (mention,))
    hold_block(ledger.db, message, block, {pattern})
    return message


def counted(ledger: Ledger, entry: int) -> tuple[int, date | None, int, int]:
    recount(ledger.db, [entry], NOW.date())
    row = lessons.entry_row(ledger.db, entry)
    return row.ref, row.last, row.citations, row.sessions


DAY = datetime(2026, 6, 10, 9, tzinfo=UTC)
PLACES = [holder("copy", DAY + timedelta(days=1), 1), holder("first", DAY, 3, 50), holder("twin", DAY, 2, 70)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_credit_goes_to_the_earliest_holder_in_any_order_of_finding(tmp_path: Path, order: tuple[int, ...]) -> None:
    ledger = open_ledger(tmp_path, NOW)
    with ledger.transaction():
        entry = add_entry(ledger)
        for i in order:
            cite(ledger, entry, "m", PLACES[i])
        assert counted(ledger, entry) == (1, date(2026, 6, 10), 1, 1)
        credited = ledger.db.execute("SELECT session FROM messages").fetchone()[0]
    ledger.close()
    assert credited == "first"


def test_a_reference_is_a_session_and_a_day(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger)
        cite(ledger, entry, "a", holder("s", DAY))
        cite(ledger, entry, "b", holder("s", DAY + timedelta(hours=3)))
        cite(ledger, entry, "c", holder("s", DAY + timedelta(days=1)))
        cite(ledger, entry, "d", holder("t", DAY))
        assert counted(ledger, entry) == (3, date(2026, 6, 11), 4, 2)


def test_the_number_of_the_file_covers_its_days(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger, covers=DAY.date(), ref=7)
        cite(ledger, entry, "a", holder("s", DAY))
        cite(ledger, entry, "b", holder("s", DAY + timedelta(days=1)))
        assert counted(ledger, entry) == (8, date(2026, 6, 11), 2, 1)


def test_a_new_entry_earns_from_its_day_on_and_a_listing_never(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger, earns_from=DAY.date())
        cite(ledger, entry, "a", holder("s", DAY - timedelta(days=1)))
        cite(ledger, entry, "b", holder("s", DAY))
        cite(ledger, entry, "c", holder("u", DAY + timedelta(days=2)), listed=True)
        assert counted(ledger, entry) == (1, DAY.date(), 1, 1)


def test_an_author_does_not_cite_itself_later_on_that_day(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger)
        before = cite(ledger, entry, "a", holder("s", DAY))
        written = hold_message(ledger.db, key_of("w"), 1, holder("s", DAY + timedelta(hours=1)))
        hold_authorship(ledger.db, written, [entry])
        cite(ledger, entry, "b", holder("s", DAY + timedelta(hours=2)))
        assert counted(ledger, entry) == (1, DAY.date(), 1, 1)
        cite(ledger, entry, "c", holder("other", DAY + timedelta(hours=2)))
        cite(ledger, entry, "d", holder("s", DAY + timedelta(days=1)))
        assert counted(ledger, entry) == (3, date(2026, 6, 11), 3, 2)
        assert before


ROWS = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=12), st.randoms())
def test_numbers_do_not_depend_on_order_or_repetition(rows: list[tuple[int, int, int]], random: object) -> None:
    """Rows are (message, day, file): the same message may be found at several days and in several files."""
    results = set()
    shuffled = rows + rows
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for order in (rows, shuffled):
        ledger = memory_ledger()
        entry = add_entry(ledger)
        for message, day, file in order:
            cite(ledger, entry, str(message), holder(f"s{file}", DAY + timedelta(days=day), file + 1, 10 - file))
        results.add(counted(ledger, entry))
        ledger.close()
    assert len(results) == 1


def memory_ledger() -> Ledger:
    import sqlite3

    from kbd.store.ledger.schema import TABLES

    ledger = Ledger.__new__(Ledger)
    ledger.path = Path(":memory:")
    ledger.db = sqlite3.connect(":memory:", isolation_level=None)
    ledger.db.row_factory = sqlite3.Row
    ledger.db.executescript(TABLES)
    return ledger


def test_pairs_are_remembered(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger)
        lessons.add_pair(ledger.db, entry, Pair(3, None))
        lessons.add_pair(ledger.db, entry, Pair(3, None))
        lessons.add_pair(ledger.db, entry, Pair(4, DAY.date()))
    assert lessons.pairs_of(ledger.db, entry) == {Pair(3, None), Pair(4, DAY.date())}


def relations(ledger: Ledger) -> dict[str, tuple[str, str | None]]:
    return {r["o"]: (r["u"], r["e"]) for r in ledger.db.execute("SELECT o, u, e FROM relations ORDER BY o")}


def test_a_citation_creates_and_then_touches_a_relation(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger)
        cite(ledger, entry, "a", holder("s", DAY), files=("a.py",))
        grow_relations(ledger.db, [entry], NOW.date())
        assert relations(ledger) == {"a.py": ("2026-06-10", None)}
        cite(ledger, entry, "b", holder("s", DAY + timedelta(days=3)), files=("a.py", "b.py"))
        grow_relations(ledger.db, [entry], NOW.date())
        assert relations(ledger) == {"a.py": ("2026-06-13", None), "b.py": ("2026-06-13", None)}


def test_over_twenty_files_the_stalest_expires_and_a_year_old_one_never_begins(ledger: Ledger) -> None:
    with ledger.transaction():
        entry = add_entry(ledger)
        cite(ledger, entry, "old", holder("s", DAY - timedelta(days=400)), files=("ancient.py",))
        for i in range(20):
            cite(ledger, entry, f"m{i}", holder("s", DAY - timedelta(days=i)), files=(f"f{i:02}.py",))
        grow_relations(ledger.db, [entry], NOW.date())
        assert "ancient.py" not in relations(ledger)
        cite(ledger, entry, "new", holder("s", DAY + timedelta(days=1)), files=("new.py",))
        grow_relations(ledger.db, [entry], NOW.date())
        found = relations(ledger)
    assert found["f19.py"] == ("2026-05-22", NOW.date().isoformat())
    assert sum(e is None for _, e in found.values()) == 20


def test_a_relation_a_person_removed_comes_back_only_when_used_again(ledger: Ledger) -> None:
    with ledger.transaction() as db:
        entry = add_entry(ledger)
        cite(ledger, entry, "a", holder("s", DAY), files=("a.py",))
        grow_relations(db, [entry], NOW.date())
        db.execute("UPDATE relations SET dirty=0")
        grow_relations(db, [entry], NOW.date())
        assert db.execute("SELECT sum(dirty) FROM relations").fetchone()[0] == 0
        cite(ledger, entry, "b", holder("s", DAY + timedelta(days=1)), files=("a.py",))
        grow_relations(db, [entry], NOW.date())
        assert db.execute("SELECT sum(dirty) FROM relations").fetchone()[0] == 1
