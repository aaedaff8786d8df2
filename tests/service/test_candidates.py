"""Which files of a project look like knowledge, and what decay would make of them."""

from datetime import date, timedelta
from pathlib import Path

import pytest

import kbd
from kbd.core.decay import DecayPolicy
from kbd.core.entries import parse
from kbd.service.candidates import find_candidates
from kbd.service.outlook import outlook, subjects

ENTRY = "- **A lesson worth keeping {}**: text\n"


def entries(number):
    return "".join(ENTRY.format(at) for at in range(number))


def names(root, **more):
    found, problems = find_candidates(str(root), **more)
    assert problems == []
    return [candidate.path.removeprefix(f"{root}/") for candidate in found]


@pytest.mark.parametrize(
    ("path", "number", "is_found"),
    [
        ("knowledge/any.md", 1, True),
        (".context/any.md", 1, True),
        ("deep/in/here/memory/any.md", 1, True),
        ("MEMORY.md", 1, True),
        ("docs/lessons.md", 1, True),
        ("docs/any.md", 2, False),
        ("docs/any.md", 3, True),
        ("knowledge/empty.md", 0, False),
        ("README.md", 9, False),
        ("knowledge/CHANGELOG.md", 9, False),
        ("node_modules/x/knowledge/any.md", 9, False),
        (".git/knowledge/any.md", 9, False),
        (".cache/memory/any.md", 9, False),
        ("tests/memory/any.md", 9, False),
        ("knowledge/lessons-archive.md", 9, False),
        ("knowledge/.hidden.md", 9, False),
        ("knowledge/any.txt", 9, False),
        ("1/2/3/4/5/6/7/memory/any.md", 9, False),
    ],
)
def test_place_name_and_entries_make_a_candidate(tmp_path, path, number, is_found):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(entries(number))
    assert names(tmp_path) == ([path] if is_found else [])


def test_document_counts_if_its_entries_are_marked_as_such(tmp_path):
    (tmp_path / "README.md").write_text("- [pitfall] **A lesson here**: x\n" * 3)
    assert names(tmp_path) == ["README.md"]


def test_folders_left_out_and_links_are_not_entered(tmp_path):
    for folder in ("knowledge", "state/knowledge"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text(entries(3))
    (tmp_path / "memory").symlink_to(tmp_path / "knowledge")
    (tmp_path / "knowledge/same.md").symlink_to("a.md")
    assert names(tmp_path, leave_out=[str(tmp_path / "state")]) == ["knowledge/a.md"]


def test_bytes_that_are_no_text_do_no_harm(tmp_path):
    (tmp_path / "notes.md").write_bytes(b"\xff\xfe\x00- **\n" * 100)
    assert names(tmp_path) == []


def standing(text, today, days=400, dates=None, **policy):
    entries = parse(text.encode()).entries
    limits = DecayPolicy(**({"change_min": 100} | policy))
    changes = outlook(subjects(entries, dates or {}), limits, today, days)
    return [((day.on - today).days, day.active, day.dormant, day.archived) for day in changes]


TODAY = date(2026, 6, 11)


def test_undated_entries_fade_on_the_first_pass_which_waits_a_day():
    assert standing(entries(3), TODAY, days=10) == [(1, 0, 3, 0)]


def test_brake_spreads_the_first_passes_over_days():
    assert standing(entries(12), TODAY, days=5, change_min=5) == [(1, 7, 5, 0), (2, 2, 10, 0), (3, 0, 12, 0)]


def test_date_given_holds_an_entry_up_for_its_time():
    dates = {0: TODAY - timedelta(days=10)}
    assert standing(entries(1), TODAY, dates=dates) == [(80, 0, 1, 0), (170, 0, 0, 1)]


def test_marked_entries_are_dormant_from_the_start():
    assert standing("- ⚠️ **A dormant one**: x (2026-06-01)\n", TODAY) == [(170, 0, 0, 1)]


def test_a_clone_of_kbd_itself_holds_no_lessons_for_init():
    assert names(Path(kbd.__file__).parents[1]) == []
