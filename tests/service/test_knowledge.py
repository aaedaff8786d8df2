"""Which entry is which when files change: moves, edited titles, twins, archives, a person's numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from kbd.core.model import State
from kbd.service.knowledge import BaseSpec, Synced, sync_base
from kbd.store.base_files import read_base
from kbd.store.ledger import lessons, open_ledger
from kbd.store.ledger.lessons import EntryRow

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
A = "- [pitfall] **Lock fd leaked on exception path** — close it in finally, always and everywhere you open one\n"
B = "- [guideline] **Backoff must be capped** — thirty seconds are enough for every client we know about\n"
C = "- [model] **Store timestamps in UTC** — convert at the edge and nowhere else, never in the middle\n"


class Base:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "kb").mkdir()
        (folder / "state").mkdir(mode=0o700)
        self.ledger = open_ledger(folder / "state", NOW)
        with self.ledger.transaction():
            base = lessons.base_id(self.ledger.db, "lessons")
        self.spec = BaseSpec(base, "lessons", frozenset(("pitfall", "guideline", "model", "decision", "process")))
        self.now = NOW

    def write(self, name: str, text: str) -> None:
        (self.folder / "kb" / name).write_text(text, encoding="utf-8")

    def sync(self, days: int = 0) -> Synced:
        self.now += timedelta(days=days)
        known = lessons.notes_of(self.ledger.db, self.spec.id)
        files, problems = read_base([str(self.folder / "kb/*.md")], known)
        return sync_base(self.ledger, self.spec, files, problems, self.now)

    def rows(self, *, gone: bool = False) -> dict[str, EntryRow]:
        return {r.title: r for r in lessons.entries_of(self.ledger.db, self.spec.id, gone=gone)}

    def patterns(self, entry: int) -> set[tuple[str, str | None]]:
        rows = self.ledger.db.execute("SELECT text, until FROM patterns WHERE entry=? AND kind='title'", (entry,))
        return {(r[0], r[1]) for r in rows}


@pytest.fixture
def base(tmp_path: Path):
    opened = Base(tmp_path)
    yield opened
    opened.ledger.close()


def test_a_second_sync_of_unchanged_files_changes_nothing(base: Base) -> None:
    base.write("a.md", A + B)
    assert base.sync().changed
    before = base.ledger.db.total_changes
    assert base.sync() == Synced(False, False)
    assert base.ledger.db.total_changes == before


def test_an_entry_keeps_its_history_when_it_moves_to_another_file_and_section(base: Base) -> None:
    base.write("a.md", "# One\n\n" + A + B)
    base.write("b.md", "# Two\n\n" + C)
    base.sync()
    moved = base.rows()["Backoff must be capped"].id
    base.write("a.md", "# One\n\n" + A)
    base.write("b.md", "# Two\n\n" + C + B)
    base.sync(1)
    assert base.rows()["Backoff must be capped"].id == moved
    assert base.rows()["Backoff must be capped"].section == "Two"


@pytest.mark.parametrize("first", ["a.md", "b.md"])
def test_an_entry_that_moves_in_two_steps_keeps_its_history(base: Base, first: str) -> None:
    base.write("a.md", A + B)
    base.write("b.md", C)
    base.sync()
    moved = base.rows()["Backoff must be capped"].id
    after = {"a.md": A, "b.md": C + B}
    for name in sorted(after, key=lambda name: name != first):
        base.write(name, after[name])
        base.sync()
    rows = [r for r in lessons.entries_of(base.ledger.db, base.spec.id) if r.title == "Backoff must be capped"]
    assert [(r.id, Path(r.file).name) for r in rows] == [(moved, "b.md")]


def test_an_edited_title_keeps_its_history_and_the_old_one_for_ninety_days(base: Base) -> None:
    base.write("a.md", A + B + C)
    base.sync()
    old = base.rows()["Backoff must be capped"]
    base.write("a.md", A + B.replace("must be capped", "needs a ceiling") + C)
    synced = base.sync(5)
    assert base.rows()["Backoff needs a ceiling"].id == old.id
    assert base.patterns(old.id) == {("backoff must be capped", "2026-09-13"), ("backoff needs a ceiling", None)}
    assert synced.changed


ALIKE = "  <!-- ref:1 | last:2026-06-01 | decay:active -->\n"


def alike(title: str, body: str) -> str:
    return f"- [pitfall] **{title}** — {body}\n{ALIKE}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            [B, C],
            [B.replace("must be capped", "needs a ceiling"), C.replace("Store timestamps", "Keep all times")],
            id="told by their words",
        ),
        pytest.param(
            [alike("The first of the two", "x"), alike("Second of the pair here", "y")],
            [alike("Another name of the second", "y"), alike("Another name of the first", "x")],
            id="same comments, order changed, told by their words",
        ),
        pytest.param(
            [alike("The first of the two", "x"), alike("Second of the pair here", "y")],
            [alike("Another name of the first", "x, told better"), alike("Another name of the second", "y as well")],
            id="same comments, words changed, told by their order",
        ),
    ],
)
def test_titles_edited_side_by_side_keep_their_histories(base: Base, before: list[str], after: list[str]) -> None:
    base.write("a.md", A + "".join(before))
    base.sync()
    old = {row.body.split()[0].strip(","): row.id for row in base.rows().values()}
    base.write("a.md", A + "".join(after))
    base.sync(1)
    assert {row.body.split()[0].strip(","): row.id for row in base.rows().values()} == old
    assert not [row for row in base.rows(gone=True).values() if row.gone_on is not None]


def test_an_edited_title_beside_a_new_and_a_deleted_entry_keeps_its_history(base: Base) -> None:
    base.write("a.md", A + B + C)
    base.sync()
    rows = {title: row.id for title, row in base.rows().items()}
    new = "- [guideline] **Retry at most thrice** — three attempts, then tell whoever asked for it\n"
    base.write("a.md", A + new + B.replace("must be capped", "needs a ceiling"))
    base.sync(1)
    assert base.rows()["Backoff needs a ceiling"].id == rows["Backoff must be capped"]
    assert base.rows()["Retry at most thrice"].id not in rows.values()


def test_another_title_with_other_words_is_another_entry(base: Base) -> None:
    base.write("a.md", A + B + C)
    base.sync()
    old = base.rows()["Backoff must be capped"].id
    other = "- [guideline] **Retry at most thrice** — three attempts, then tell whoever asked for it\n"
    base.write("a.md", A + other + C)
    base.sync(1)
    assert base.rows()["Retry at most thrice"].id != old
    assert base.rows(gone=True)["Backoff must be capped"].gone_on == date(2026, 6, 11)


def test_an_entry_that_comes_back_is_the_same_one(base: Base) -> None:
    base.write("a.md", A + B)
    base.sync()
    old = base.rows()["Backoff must be capped"].id
    base.write("a.md", A)
    base.sync(1)
    base.write("a.md", A + B)
    synced = base.sync(3)
    assert base.rows()["Backoff must be capped"].id == old
    assert synced.changed


def test_an_unreadable_folder_takes_no_entry_away(base: Base) -> None:
    base.write("a.md", A + B)
    base.sync()
    (base.folder / "kb").rename(base.folder / "elsewhere")
    base.sync(1)
    assert set(base.rows()) == {"Lock fd leaked on exception path", "Backoff must be capped"}


def test_a_new_entry_is_created_on_the_day_it_appears_and_an_old_undated_one_never(base: Base) -> None:
    base.write("a.md", A)
    base.sync()
    base.write("a.md", A + B)
    synced = base.sync(2)
    assert base.rows()["Lock fd leaked on exception path"].created is None
    assert base.rows()["Backoff must be capped"].created == date(2026, 6, 12)
    assert synced.changed


def test_a_persons_number_becomes_an_adjustment_and_an_old_one_is_stale(base: Base) -> None:
    comment = "  <!-- ref:3 | last:2026-06-01 | decay:active -->\n"
    base.write("a.md", A + comment)
    base.sync()
    base.write("a.md", A + comment.replace("ref:3", "ref:50"))
    base.sync(1)
    assert base.rows()["Lock fd leaked on exception path"].ref == 50
    base.write("a.md", A + comment)
    base.sync(1)
    assert base.rows()["Lock fd leaked on exception path"].ref == 50


def test_a_future_last_covers_nothing(base: Base) -> None:
    base.write("a.md", A + "  <!-- ref:3 | last:2099-01-01 | decay:active -->\n")
    base.sync()
    row = base.rows()["Lock fd leaked on exception path"]
    assert (row.ref, row.covers, row.last, row.bad_date) == (3, None, None, True)


def test_a_live_entry_with_an_archived_title_takes_the_history(base: Base) -> None:
    base.write("a.md", A)
    base.write("a-archive.md", B + "  <!-- ref:4 | last:2025-01-01 | decay:archived -->\n")
    base.sync()
    archived = base.rows()["Backoff must be capped"]
    assert archived.state is State.ARCHIVED
    base.write("a.md", A + B)
    base.sync(1)
    row = base.rows()["Backoff must be capped"]
    assert (row.id, row.state, row.ref, row.active_since) == (archived.id, State.ACTIVE, 4, date(2026, 6, 11))
    assert len(base.rows(gone=True)) == 2


def test_two_entries_with_one_title_stay_two(base: Base) -> None:
    base.write("a.md", "# One\n\n" + A + "\n# Two\n\n" + A)
    base.sync()
    before = [(r.id, r.section) for r in lessons.entries_of(base.ledger.db, base.spec.id)]
    base.write("a.md", "# Two\n\n" + A + "\n# One\n\n" + A)
    base.sync(1)
    after = [(r.id, r.section) for r in lessons.entries_of(base.ledger.db, base.spec.id)]
    assert sorted(after) == before
    assert len(before) == 2
