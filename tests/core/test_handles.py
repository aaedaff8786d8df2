"""Handles: the stated bits in the stated alphabet."""

from __future__ import annotations

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from kbd.core.handles import handle

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@given(st.text(max_size=30))
def test_handle_spells_the_first_bits_of_the_digest(norm: str) -> None:
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(norm.encode("utf-8", "surrogatepass")).digest())
    expected = "".join(ALPHABET[int(bits[at : at + 5], 2)] for at in range(0, 50, 5))
    assert handle(norm) == f"k-{expected[:6]}"
    assert handle(norm, 10) == f"k-{expected}"


def test_handle_of_a_title_is_the_same_everywhere() -> None:
    # sha256("lock fd leaked on exception path") begins with the bytes below.
    digest = hashlib.sha256(b"lock fd leaked on exception path").hexdigest()
    assert re.fullmatch("k-[0-9a-hjkmnp-tv-z]{6}", handle("lock fd leaked on exception path"))
    assert handle("lock fd leaked on exception path")[2] == ALPHABET[int(digest[:2], 16) >> 3]


def test_handle_of_a_title_with_invalid_bytes_exists() -> None:
    assert len(handle("caf\udce9 title")) == 8
