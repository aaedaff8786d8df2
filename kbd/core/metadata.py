"""The metadata comment of an entry: read in any old spelling, written in one.

`<!-- ref:3 | last:2026-05-19 | decay:active | sessions:4 -->`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from kbd.core.model import Metadata, State

_KNOWN = ("ref", "last", "decay")
_KEY = re.compile(r"[A-Za-z][\w-]{0,39}")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_COUNT = re.compile(r"[0-9]{1,9}")
# Far over what sessions and days give; seen where two counts were joined as text.
_LARGE_REF = 1000
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Lone surrogates that stand for no byte of a file cannot be written.
_BREAKING = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udc7f\udd00-\udfff]+")
_CLOSING = re.compile(r"--+!?>")


@dataclass(frozen=True, slots=True)
class Comment:
    """One metadata comment.

    Attributes:
        meta: what it says; a key without a readable value counts as missing.
        faults: the pairs that cannot be believed, such as `ref:-1`.
    """

    meta: Metadata
    faults: tuple[str, ...]


def parse_comment(text: str) -> Comment | None:
    """Return what a whole HTML comment says, None if it is no metadata comment.

    It is one if it names at least two of `ref`, `last` and `decay`, or one with a readable value and nothing but
    `key:value` pairs; so prose such as `<!-- ref: see docs -->` is left alone. Spacing, order and the case of the
    known keys are free. A comment that begins with `maturity` is another kind.
    """
    text = text.strip()
    if not (text.startswith("<!--") and text.endswith("-->") and len(text) > len("<!---->")):
        return None
    pairs = [_pair(part) for part in text[4:-3].split("|") if part.strip()]
    known = {key: value for key, value in pairs if key in _KNOWN}
    if not known or pairs[0][0].lower() == "maturity":
        return None
    comment = _comment(known, tuple(pair for pair in pairs if pair[0] not in _KNOWN))
    return comment if len(known) > 1 or _is_sure(comment, known, pairs) else None


def merge(stacked: Sequence[Metadata]) -> Metadata:
    """Return the one meaning of stacked comments (at least one, in file order).

    The newest real `last` wins, then the highest `ref`; what the winner lacks comes from the next. Further keys
    stand in the order of their first appearance, with the winner's value.
    """
    ranked = sorted(stacked, key=_rank, reverse=True)
    if len(ranked) == 1:
        return ranked[0]
    extra: dict[str, tuple[str, str]] = {}
    for meta in (*stacked, *reversed(ranked)):
        extra.update({key or value: (key, value) for key, value in meta.extra})
    return Metadata(
        ref=next((meta.ref for meta in ranked if meta.ref is not None), None),
        last=ranked[0].last,
        last_given=any(meta.last_given for meta in ranked),
        state=next((meta.state for meta in ranked if meta.state is not None), None),
        extra=tuple(extra.values()),
    )


def render(ref: int, last: date | None, state: State, extra: Iterable[tuple[str, str]] = ()) -> str:
    """Return the comment. No value can end it, break its line, or begin another pair.

    A pair with an empty key is a bare word, as `parse_comment` gives it.
    """
    pairs = [f"ref:{ref}", f"last:{last.isoformat() if last else 'none'}", f"decay:{state.value}"]
    return _comment_of([*pairs, *_texts(extra)])


def render_extra(extra: Iterable[tuple[str, str]]) -> str:
    """Return a comment of further pairs alone: it says nothing of counters."""
    return _comment_of(_texts(extra))


def _comment_of(pairs: Iterable[str]) -> str:
    return f"<!-- {' | '.join(pairs)} -->"


def _texts(extra: Iterable[tuple[str, str]]) -> list[str]:
    return [_harmless(f"{key}:{value}" if key else value) for key, value in extra]


def _harmless(text: str) -> str:
    return _CLOSING.sub("->", _BREAKING.sub(" ", text.replace("|", "/"))).strip()


def _rank(meta: Metadata) -> tuple[date, int]:
    return meta.last or date.min, -1 if meta.ref is None else meta.ref


def _pair(part: str) -> tuple[str, str]:
    """Split at the first colon; the key of a part that is no pair is empty."""
    key, colon, value = part.strip().partition(":")
    key = key.strip()
    if not colon or not _KEY.fullmatch(key):
        return "", part.strip()
    return key.lower() if key.lower() in _KNOWN else key, value.strip()


def _is_sure(comment: Comment, known: dict[str, str], pairs: Sequence[tuple[str, str]]) -> bool:
    meta = comment.meta
    readable = meta.last_given or meta.state is not None or _INTEGER.fullmatch(known.get("ref", ""))
    return bool(readable) and all(key for key, _ in pairs)


def _comment(known: dict[str, str], extra: tuple[tuple[str, str], ...]) -> Comment:
    ref = int(known["ref"]) if _COUNT.fullmatch(known.get("ref", "")) else None
    last, last_given = _last(known.get("last", ""))
    state = next((state for state in State if state.value == known.get("decay", "").lower()), None)
    believed = {"ref": ref is not None and ref < _LARGE_REF, "last": last_given, "decay": state is not None}
    faults = tuple(f"{key}:{value}" for key, value in known.items() if not believed[key])
    return Comment(Metadata(ref, last, last_given, state, extra), faults)


def _last(value: str) -> tuple[date | None, bool]:
    """Read a day, `none`, or a date-time (its day; in UTC if it has a zone), quoted or not."""
    value = value.strip("\"' ")
    if value.lower() == "none":
        return None, True
    if not _DAY.match(value):
        return None, False
    try:
        at = datetime.fromisoformat(value)
        return (at.astimezone(UTC) if at.tzinfo else at).date(), True
    except (ValueError, OverflowError):
        return None, False
