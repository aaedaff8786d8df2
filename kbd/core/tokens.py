"""How many tokens a model would make of a text, estimated without its vocabulary."""

from __future__ import annotations

import math
import re

_WIDE = r"\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = re.compile(
    r"(?P<word> [A-Za-z][a-z]+|(?<!\S)[A-Za-z][a-z]+)|(?P<part>(?<![^\s\w])[._(/\\-]?(?:[A-Z]?[a-z]+|[A-Z]+))"
    rf"|(?P<digits>[0-9]+)|(?P<wide>[{_WIDE}]+)|(?P<letters>[^\W\d_A-Za-z{_WIDE}]+)"
    rf"|(?P<marks> ?[^\sA-Za-z0-9{_WIDE}]+\n*)|(?P<breaks>[^\S\n]*\n[^\S\n]*\n*)|(?P<blanks>[ \t]+)|[\s\S]"
)
_ROUGHLY_WIDE = re.compile("[\u2e81-\U0010ffff]+")
_WORD_LETTERS = 9
_PART_LETTERS = 6
_TOKENS_PER_IDEOGRAPH = 0.72
_TOKENS_PER_LETTER = 0.42


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of `text` in o200k, the vocabulary of OpenAI's models since GPT-4o.

    Within 10 % of the real count for texts of English, Chinese and both mixed. For Chinese vocabularies differ: cl100k
    and Claude's published one need about 1.3 times as many.

    The rates were fitted to that vocabulary: a word after a space is nearly always one token up to nine letters, a
    part of an identifier or a path costs one for every six letters, three digits are one, an ideograph is 0.72.
    """
    return math.ceil(sum(map(_cost, _PIECE.finditer(text))))


def rough_tokens(data: bytes) -> int:
    """Return about how many tokens a whole file has: one a wide character, and one for four others."""
    text = data.decode("utf-8", "replace")
    wide = 0 if text.isascii() else sum(map(len, _ROUGHLY_WIDE.findall(text)))
    return wide + (len(text) - wide) // 4


def _cost(found: re.Match[str]) -> float:
    length = found.end() - found.start()
    match found.lastgroup:
        case "word":
            return 1.0 + max(0, length - _WORD_LETTERS) / 8
        case "part":
            return max(1.0, length / _PART_LETTERS)
        case "digits":
            return math.ceil(length / 3)
        case "wide":
            return max(1.0, _TOKENS_PER_IDEOGRAPH * length)
        case "letters":
            return max(1.0, _TOKENS_PER_LETTER * length)
        case "marks":
            return max(1.0, length / 3)
        case "breaks":
            return 2.0 if found.group().endswith((" ", "\t")) else 1.0
        case "blanks":
            return 1.0 if length > 1 else 0.5
    return 1.0
