"""Titles and texts made from a seed: English and Chinese, a quarter of the text in the titles' own words."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kbd.core.normal import normalise

_SEED = 20_260_519
_PROSE = """
cache lock retry timeout backoff socket thread commit build release deploy schema index parser token stream buffer
config secret migrate rollback path handle queue worker session state cursor record ledger version branch merge
test assert mock latency metric the a of in on to before after when never always must with without
"""
_TERMS = _PROSE.split()
_LETTERS = "etaoinshrdlucmfwypvbgk"


class Writer:
    """Writes titles and texts; the same seed gives the same ones. Not thread-safe."""

    def __init__(self, zh: float) -> None:
        self._zh = zh
        self._random = random.Random(_SEED)
        self._ideographs = [chr(0x4E00 + self._below(3_000)) for _ in range(600)]
        self._words = ["".join(self._pick(_LETTERS) for _ in range(2 + self._below(8))) for _ in range(3_000)]

    def titles(self, count: int) -> list[str]:
        """Return `count` different normalised titles of 3 to 8 words or 5 to 15 ideographs."""
        made: dict[str, None] = {}
        while len(made) < count:
            chinese = self._chance(self._zh)
            made[normalise(self._ideas(5 + self._below(11)) if chinese else self._terms(3 + self._below(6)))] = None
        return list(made)

    def text(self, titles: Sequence[str], chars: int, cited: float = 0.02) -> str:
        """Return `chars` characters of prose; a share `cited` of its phrases cites a title, in one form or another."""
        phrases: list[str] = []
        size = 0
        while size < chars:
            phrases.append(self._phrase(titles, cited))
            size += len(phrases[-1])
        return "".join(phrases)[:chars]

    def _phrase(self, titles: Sequence[str], cited: float) -> str:
        if self._chance(cited):
            return self._cited(self._pick(titles))
        if self._chance(0.25):
            return self._terms(8) + ". "
        if self._chance(self._zh):
            return self._ideas(20) + "，"
        return " ".join(self._pick(self._words) for _ in range(8)) + ",\n"

    def _cited(self, title: str) -> str:
        forms = (title, title.upper(), f"**{title}**", title.replace(" ", "\n  "), f"see `{title}`;", f"x{title}y")
        return self._pick(forms) + " "

    def _terms(self, count: int) -> str:
        return " ".join(self._pick(_TERMS) for _ in range(count))

    def _ideas(self, count: int) -> str:
        return "".join(self._pick(self._ideographs) for _ in range(count))

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def _pick(self, choices: Sequence[str]) -> str:
        return choices[self._below(len(choices))]
