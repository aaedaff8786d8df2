"""The words around a match show no secret, wherever it lies and however it is cut."""

from __future__ import annotations

import random
import string

import pytest

from kbd.core.snippet import snippet

TITLE = "lock fd leaked on exception path"
DRAW = random.Random(4)
BASE64 = string.ascii_letters + string.digits + "+/"


def drawn(length: int) -> str:
    return "".join(DRAW.choice(BASE64) for _ in range(length))


LINES = [drawn(64) for _ in range(48)] + [drawn(30) + "=="]
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
JWT = f"eyJ{drawn(400)}.c3ViMQ.{drawn(43)}".replace("+", "a").replace("/", "b")


def shown(text: str, chars: int) -> str:
    start = text.index(TITLE)
    return snippet(text, start, start + len(TITLE), chars)


@pytest.mark.parametrize("chars", [40, 160, 400, 1000])
@pytest.mark.parametrize("key", [KEY, KEY.replace("\n", "\\n"), KEY[KEY.index(LINES[10]) :]], ids=["", "esc", "cut"])
def test_no_line_of_a_private_key_shows(key: str, chars: int) -> None:
    halves = (f"{key}{TITLE}", f"{key}\n{TITLE}\n{key}", f"{TITLE}\n{key[:900]}")
    for text in (f"{key}\n{TITLE}, so", f"{TITLE}, so\n{key}", *halves):
        said = shown(text, chars)
        assert TITLE in said
        assert not [line for line in LINES if line[:12] in said or line[-12:] in said]


@pytest.mark.parametrize("distance", range(0, 400, 13))
def test_no_piece_of_a_token_shows_at_any_distance(distance: int) -> None:
    gap = ("word " * 100)[:distance]
    for token in (JWT, "ghp_" + "aB3" * 12, "sk-ant-api03-" + "aB3" * 30):
        for text in (f"{token} {gap} {TITLE}", f"{TITLE} {gap} {token}"):
            said = shown(text, 160)
            assert TITLE in said
            assert not any(token[at : at + 10] in said for at in range(len(token) - 10))


def test_words_around_a_title_stay_up_to_the_limit() -> None:
    said = shown(f"{'before ' * 100}{TITLE}{' after' * 100}", 160)
    assert said.startswith("before ") or said.startswith("efore ")
    assert len(said) == 160


def test_text_without_blanks_keeps_its_neighbours() -> None:
    text = "缓存必须有上限" * 60
    assert len(snippet(text, 200, 207, 100)) == 100
