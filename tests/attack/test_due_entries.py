"""What is due is asked of the database for all entries, and of one entry in words: both say the same."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbd.core.model import State
from kbd.store.ledger import lessons
from kbd.store.ledger.due import due_by_file
from tests.attack.lab import Lab

STATES = st.sampled_from(list(State))
DAYS = st.none() | st.sampled_from([date(2026, 6, 1), date(2026, 6, 2)])


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(0, 2), DAYS, st.none() | STATES, st.booleans(), st.integers(0, 2), DAYS, STATES
        ),
        min_size=12,
        max_size=12,
    ),
    markers=st.booleans(),
)
def test_database_and_entry_agree_on_what_is_due(rows: list[tuple[object, ...]], markers: bool) -> None:
    with TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        for number in range(12):
            lab.note(f"- **Title number {number} of twelve** — text\n", f"f{number:02}.md")
        lab.run()
        assert lab.engine is not None
        db = lab.engine.frame.ledger.db
        names = ("file_ref", "file_last", "file_state", "file_marker", "ref", "last", "state")
        for entry, row in zip(lab.entries(), rows, strict=True):
            lessons.update_entry(db, entry.id, **dict(zip(names, row, strict=True)))
        due = due_by_file(db, lab.entries()[0].base, markers=markers)
        assert due == {e.file: 1 for e in lab.entries() if e.differs_from_file(markers=markers)}
        lab.restart()


def test_write_into_one_of_many_files_leaves_the_entries_of_the_others_alone(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for number in range(30):
        text = f"- **Title number {number} of many** — text\n- **Second {number} of its file** — text\n"
        lab.note(text, f"{number}.md")
    lab.run()
    assert lab.engine is not None
    path = lab.say("s1", "as in Title number 7 of many we wait")
    before = lab.engine.frame.ledger.db.total_changes
    lab.run(hints=[str(path)])
    assert lab.ref("Title number 7 of many") == 1
    assert "ref:1" in (tmp_path / "kb" / "7.md").read_text()
    assert lab.engine.frame.ledger.db.total_changes - before < 40
