"""Where a number comes from, in words, and where the file differs."""

import re
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import State
from kbd.service.report import origin, pending
from kbd.store.ledger.lessons import EntryRow


def row(**values):
    """Return an entry in step with its file, all else empty."""
    names = dict.fromkeys(EntryRow.__dataclass_fields__)
    zeros = dict.fromkeys(("base_ref", "adjust", "ref", "citations", "sessions", "listed", "file_ref"), 0)
    return EntryRow(**(names | zeros | {"state": State.ACTIVE, "file_marker": False} | values))


@pytest.mark.parametrize(
    "values, counted, expected",
    [
        ({"ref": 0}, 0, "ref 0 = 0 references"),
        ({"ref": 1}, 1, "ref 1 = 1 reference"),
        ({"ref": 7, "base_ref": 7}, 0, "ref 7 = 7 found in the file"),
        (
            {"ref": 12, "base_ref": 7, "covers": date(2026, 6, 11)},
            5,
            "ref 12 = 7 found in the file (covers up to 2026-06-11) + 5 references",
        ),
        ({"ref": 10, "base_ref": 7, "adjust": -2}, 5, "ref 10 = 7 found in the file - 2 set by hand + 5 references"),
        (
            {"ref": 0, "base_ref": 3, "adjust": -9},
            1,
            "ref 0 = 3 found in the file - 9 set by hand + 1 reference (never below 0)",
        ),
        ({"ref": 3, "base_ref": -2}, 5, "ref 3 = -2 found in the file + 5 references"),
        (
            {"ref": 2, "covers": date(2026, 6, 11)},
            2,
            "ref 2 = 0 found in the file (covers up to 2026-06-11) + 2 references",
        ),
    ],
)
def test_a_number_is_explained(values, counted, expected):
    assert origin(row(**values), counted) == expected


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 50))
def test_the_terms_always_make_the_number(base_ref, adjust, counted):
    text = origin(row(base_ref=base_ref, adjust=adjust, ref=max(base_ref + adjust + counted, 0)), counted)
    said, terms = text.split(" = ")
    numbers = [
        int(sign.replace(" ", "") + digits)
        for sign, digits in re.findall(r"((?:^|[+-] ?)-?)(\d+) [a-z]", terms.removesuffix(" (never below 0)"))
    ]
    assert max(sum(numbers), 0) == int(said.removeprefix("ref "))


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, ""),
        ({"ref": 12, "file_ref": 11}, "file says 11, write pending"),
        ({"ref": 12, "file_ref": 11, "last": date(2026, 6, 11)}, "file says 11, last none, write pending"),
        ({"state": State.DORMANT, "file_state": State.ACTIVE}, "file says active, write pending"),
        ({"state": State.DORMANT, "file_state": State.DORMANT}, "file says another marker, write pending"),
        ({"file_ref": None, "ref": 1}, "the file has no number yet, write pending"),
        ({"file_ref": None}, ""),
    ],
)
def test_a_difference_is_named(values, expected):
    assert pending(row(**values), markers=True) == expected


def test_without_markers_a_missing_one_is_no_difference():
    entry = row(state=State.DORMANT, file_state=State.DORMANT)
    assert pending(entry, markers=False) == ""
    assert pending(replace(entry, ref=2), markers=False) == "file says 0, write pending"
