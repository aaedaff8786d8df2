"""The estimate is held against counts of a real tokenizer, kept as data."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.tokens import estimate_tokens

# `tokens` is the length of the o200k encoding of `text`, as tiktoken gives it.
COUNTS = json.loads(Path(__file__).with_name("token_counts.json").read_text("utf-8"))["counts"]


@pytest.mark.parametrize("counted", COUNTS, ids=[counted["name"] for counted in COUNTS])
def test_estimate_is_within_ten_percent_of_the_tokenizer(counted):
    assert abs(estimate_tokens(counted["text"]) / counted["tokens"] - 1) <= 0.10


def test_no_text_has_no_tokens():
    assert estimate_tokens("") == 0


@given(st.text())
def test_any_text_but_the_empty_one_has_tokens_and_no_more_than_bytes_allow(text):
    assert bool(text) <= estimate_tokens(text) <= 2 * len(text.encode()) + 1


@pytest.mark.parametrize("text", [" " * 300_000, "a" * 300_000, "中" * 300_000, "{" * 300_000, "\n \t" * 100_000])
def test_a_hostile_text_is_estimated_in_linear_time(text):
    started = time.process_time()
    assert estimate_tokens(text) > 0
    assert time.process_time() - started < 2.0
