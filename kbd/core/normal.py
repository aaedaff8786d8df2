"""One normal form for titles and for the texts they are looked for in.

The form: Unicode NFC, lower case, runs of white space as one space and none at the ends, typographic quotes
and dashes as ASCII, backticks and asterisks dropped. `normalise` is idempotent, and canonically equivalent
texts have the same form. Each character is folded without regard to its neighbours (final sigma becomes
sigma), so that a title is found inside a word as well as at its end.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from operator import methodcaller

ECHO_CHARS = 20
"""So much of an entry's own text after its title shows that it is repeated, not used."""

_FOLD: dict[str, str] = (
    dict.fromkeys("‘’‚‛‹›ʼ", "'")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("‐‑‒–—―−﹘﹣－", "-")
    # U+1FEF is canonically the backtick: NFC would bring one back.
    | dict.fromkeys("`*\u1fef", "")
    | {"ς": "σ"}
    | dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", " ")
    | dict.fromkeys(map(chr, range(0x2000, 0x200B)), " ")
    # Decomposed here, for a run of marks to have its full length before `_cut_runs` measures it.
    | {char: unicodedata.normalize("NFD", char) for char in "\u0344\u0f73\u0f75\u0f81"}
)
_LONGEST_RUN = 500
_SPLIT_CHARS = 65_536
_stripped = methodcaller("strip", " ")
# None, not "": `str.translate` is fast only for tables of single characters and deletions.
_FOLD_ASCII = str.maketrans({char: folded or None for char, folded in _FOLD.items() if char.isascii()})
_ASCII = bytes(range(128))
_DROPPED_BYTES = "".join(char for char in _FOLD if char.isascii() and not _FOLD[char]).encode()
_FOLD_BYTES = bytes(
    ord(_FOLD.get(chr(byte).lower()) or chr(byte).lower()) if byte < 128 else byte for byte in range(256)
)
# Latin, Greek, Cyrillic; punctuation and symbols; kana, ideographs, Hangul syllables, full-width forms; what stands
# between the parts of a tool's input; selectors of emoji; pictographs. No marks otherwise.
_ALONE = re.compile(
    r"[\x80-\u02ff\u0370-\u0482\u048a-\u052f\u1e00-\u1eff\u2000-\u20cf\u2100-\u2bff\u3000-\u3029\u3030-\u3098"
    r"\u309b-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\ufdd0\ufe0e\ufe0f\uff01-\uffef\U0001f000-\U0001faff]"
)
# Those of them that are their own normal form, and come in hundreds.
_SCRIPT = re.compile(
    r"[\u3001-\u3029\uff01-\uff0c\uff0e-\uff20\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"
)
_MOST_DIFFERENT = 64


def normalise(text: str) -> str:
    """Return the normal form of `text`.

    Costs: what has nothing to do with its neighbours, as nearly all that is ever written, goes through one table of
    bytes; other text is searched for each folded character. Both are many times faster than `str.translate`.
    """
    folded = _folded_each(text) if len(text) <= _SPLIT_CHARS else None
    return _one_spaced(_folded_as_one(text) if folded is None else folded)


def _folded_each(text: str) -> str | None:
    """Fold a text character by character; None if it holds some that must not be, or very many different ones."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    folded = encoded.translate(_FOLD_BYTES, _DROPPED_BYTES)
    if not text.isascii():
        others = encoded.translate(None, _ASCII).decode()
        different = set(_SCRIPT.sub("", others))
        if len(different) > _MOST_DIFFERENT:
            return None
        for char in different:
            alone = _folded_alone(char)
            if alone is None:
                return None
            if alone != char:
                folded = folded.replace(char.encode(), alone.encode())
    return folded.decode()


@lru_cache(4096)
def _folded_alone(char: str) -> str | None:
    """Return the normal form of a character outside ASCII; None if that may depend on its neighbours.

    What `_ALONE` lets pass never composes with a character before it.
    """
    lower = char.lower()
    if not all(map(_stands_alone, {char, lower})):
        return None
    return _FOLD.get(lower, lower)


def _stands_alone(char: str) -> bool:
    return _ALONE.fullmatch(char) is not None and unicodedata.is_normalized("NFC", char)


def _folded_as_one(text: str) -> str:
    if text.isascii():
        return text.lower().translate(_FOLD_ASCII)
    text = text.lower()
    for char, folded in _FOLD.items():
        if char in text:
            text = text.replace(char, folded)
    kept = "".join(text[start:end] for start, end in _cut_runs(text))
    return unicodedata.normalize("NFC", kept)


def normalise_mapped(text: str) -> tuple[str, list[int]]:
    """Return `normalise(text)` and, for each of its characters, the index in `text` it came from.

    A space stands for its run and has the index of the run's first character; a composed character has the
    index of its base.
    """
    out: list[str] = []
    origins: list[int] = []
    for char, index in _composed(text):
        if char != " ":
            out.append(char)
            origins.append(index)
        elif out and out[-1] != " ":
            out.append(" ")
            origins.append(index)
    if out and out[-1] == " ":
        out.pop()
        origins.pop()
    return "".join(out), origins


def width(norm: str) -> int:
    """Return the number of terminal cells: East Asian wide characters 2, marks and format characters 0, others 1."""
    if norm.isascii():
        return len(norm)
    return sum(map(_cells, norm))


def _one_spaced(text: str) -> str:
    if "  " not in text:
        return text.strip(" ")
    if len(text) <= _SPLIT_CHARS:
        return " ".join([part for part in map(_stripped, text.split("  ")) if part])
    # A long text of short words in parts would take many times its size. Each round halves the runs: linear.
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip(" ")


def _cut_runs(text: str) -> list[tuple[int, int]]:
    """Return the ranges of `text` to keep: all, but of a run of combining marks the first `_LONGEST_RUN`.

    NFC sorts the marks of a run in quadratic time, so a hostile run of 100,000 would take seconds. Every run over the
    limit meets one of the sampled positions, which keeps the test cheap.
    """
    if not any(map(unicodedata.combining, text[::_LONGEST_RUN])):
        return [(0, len(text))]
    kept: list[tuple[int, int]] = []
    start = 0
    for marks, run in groupby(text, key=lambda char: unicodedata.combining(char) > 0):
        end = start + sum(1 for _ in run)
        kept.append((start, min(end, start + _LONGEST_RUN) if marks else end))
        start = end
    return kept


def _composed(text: str) -> list[tuple[str, int]]:
    """Return the folded characters of `text` in NFC, each with the index in `text` it came from."""
    folded = [
        (char, index) for index, upper in enumerate(text) for lower in upper.lower() for char in _FOLD.get(lower, lower)
    ]
    if text.isascii():
        return folded
    kept = _cut_runs("".join(char for char, _ in folded))
    return _clusters_composed([pair for start, end in kept for pair in folded[start:end]])


def _clusters_composed(folded: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Compose each cluster by itself, which equals NFC of the whole.

    A starter that leaves the text before it as it is begins a cluster: what follows can compose with it alone.
    """
    result: list[tuple[str, int]] = []
    cluster = ""
    begin = 0
    for at, (char, _) in enumerate(folded):
        if not unicodedata.combining(char) and _independent(cluster, char):
            _compose(cluster, folded[begin:at], result)
            cluster, begin = "", at
        cluster += char
    _compose(cluster, folded[begin:], result)
    return result


def _independent(cluster: str, char: str) -> bool:
    if char.isascii() or unicodedata.is_normalized("NFC", cluster + char):
        return True
    return unicodedata.normalize("NFC", cluster + char) == unicodedata.normalize("NFC", cluster) + char


def _compose(cluster: str, pairs: list[tuple[str, int]], result: list[tuple[str, int]]) -> None:
    composed = unicodedata.normalize("NFC", cluster)
    if composed == cluster:
        result.extend(pairs)
    else:
        result.extend((char, pairs[min(at, len(pairs) - 1)][1]) for at, char in enumerate(composed))


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
