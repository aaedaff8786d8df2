"""The normal form: idempotent, context-free, and mapped back to the original exactly."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbd.core.normal import normalise, normalise_mapped, width

ODD = (
    "\u0130Σς`*‘’“”«»‐–—−\u00a0\u2028\u3000\x85\x1c \t\né\u0301\u0323\u0344\u0f73\u0f71\u0cc6\u0cc2\u0cd5가"
    "\u1100\u1161\u11a8\u1fef\u212b\u2126ǰ不😀\ud800"
)
texts = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=[])), max_size=40)


@pytest.mark.parametrize(
    ("text", "norm"),
    [
        ("LOCK FD LEAKED\n  on exception path", "lock fd leaked on exception path"),
        ("Don’t trust mtime – compare «bytes»", 'don\'t trust mtime - compare "bytes"'),
        ("Use **`subprocess.run`**", "use subprocess.run"),
        ("\u00a0a\u2028 b\x85\x0cc\u3000", "a b c"),
        ("Cafe\u0301", "caf\u00e9"),
        ("e`\u0301", "\u00e9"),
        ("\u0130stanbul", "i\u0307stanbul"),
        ("ΟΔΟΣ", "οδοσ"),
        ("不要“缓存”", '不要"缓存"'),
        ("", ""),
        (" \n ", ""),
        ("``**", ""),
        ("a\u200b\x00b", "a\u200b\x00b"),
    ],
)
def test_text_has_this_normal_form(text: str, norm: str) -> None:
    assert normalise(text) == norm


@given(texts)
@example("\u1fef")
@example("I\u0323\u0307")
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_each_character_alone_and_under_a_mark_has_a_stable_form() -> None:
    for start in (*range(0, 0x20000, 512), 0xE0000):
        block = "".join(f"{char}, {char}\u0301, " for char in map(chr, range(start, start + 512)))
        assert normalise(normalise(block)) == normalise(block)


def test_few_characters_at_a_time_fold_as_the_mapped_form_says() -> None:
    """Texts with few different characters are folded each by itself: between letters, after one, under a mark."""
    for start in range(0x80, 0x20000, 32):
        block = "".join(f"e{char}X Σ{char} " for char in map(chr, range(start, start + 32)))
        assert normalise(block) == normalise_mapped(block)[0]


def test_every_white_space_character_is_folded() -> None:
    spaces = [char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace()]
    assert [char for char in spaces if normalise(f"a{char}b") != "a b"] == []


@given(texts)
def test_canonically_equivalent_texts_have_one_form(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(text)


@given(texts)
@example("\u0cc6\u0cc2\u0cd5")
@example("ᄀ\u1161\u11a8")
def test_mapped_form_equals_the_plain_one_and_maps_in_order(text: str) -> None:
    norm, origins = normalise_mapped(text)
    assert norm == normalise(text)
    assert len(origins) == len(norm)
    assert origins == sorted(origins)
    assert all(0 <= origin < len(text) for origin in origins)


def test_origins_point_at_the_characters_they_came_from() -> None:
    text = " **\u0130x**\n\n Cafe\u0301 不"
    norm, origins = normalise_mapped(text)
    assert [(char, text[origin]) for char, origin in zip(norm, origins, strict=True)] == [
        ("i", "\u0130"),
        ("\u0307", "\u0130"),
        ("x", "x"),
        (" ", "\n"),
        ("c", "C"),
        ("a", "a"),
        ("f", "f"),
        ("\u00e9", "e"),
        (" ", " "),
        ("不", "不"),
    ]


@given(texts)
def test_ascii_part_of_a_text_folds_as_it_does_alone(text: str) -> None:
    ascii_part = "".join(char for char in text if char.isascii())
    assert normalise(f"{ascii_part} \u4e0d") == normalise(f"{normalise(ascii_part)} \u4e0d")


def test_a_hostile_run_of_marks_is_cut_and_costs_linear_time() -> None:
    text = "a" + "\u0301\u0323" * 200_000 + " b"
    norm = normalise(text)
    assert norm.endswith(" b")
    assert len(norm) < 1_000
    assert normalise_mapped(text)[0] == norm == normalise(norm)
    assert normalise("\u0f73" * 100_000) == normalise_mapped("\u0f73" * 100_000)[0]


@pytest.mark.parametrize(
    ("norm", "cells"),
    [
        ("", 0),
        ("builder", 7),
        ("数据库锁", 8),
        ("e\u0301x", 2),
        ("\uff41", 2),
        ("a\u200b\u00adb", 2),
        ("缓存ab", 6),
        ("\u20dd", 0),
    ],
)
def test_width_counts_terminal_cells(norm: str, cells: int) -> None:
    assert width(norm) == cells
