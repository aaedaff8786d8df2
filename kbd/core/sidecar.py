"""The file that holds counters beside a Markdown file that kbd leaves alone: title → ref, last, decay, handle.

Read with the bounds of all YAML, and as metadata comments are: a value that cannot be read says nothing. Written whole,
one line an entry, in the order of the Markdown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kbd.core import yamltext
from kbd.core.metadata import parse_comment
from kbd.core.model import Entry, Metadata, Pair, State
from kbd.core.normal import normalise
from kbd.core.yamltext import Node, Scalar, compose
from kbd.errors import FileUnreadable

HEAD = "# Counters of the lessons in the file beside this one; kbd writes it, and takes edits as it does in comments.\n"
KNOWN = ("ref", "last", "decay", "handle")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Line:
    """What the file says of one entry: the pair, the state, its handle, further keys in their order."""

    key: str
    pair: Pair
    state: State
    handle: str
    extra: tuple[tuple[str, str], ...] = ()


def keys_of(entries: Sequence[Entry]) -> list[str]:
    """Return the key of each entry: its title; of several with one title, the later ones bear a number."""
    seen: dict[str, int] = {}
    keys = []
    for entry in entries:
        number = seen[entry.norm] = seen.get(entry.norm, 0) + 1
        keys.append(entry.title if number == 1 else f"{entry.title} #{number}")
    return keys


def parse(data: bytes, name: str) -> dict[str, Metadata]:
    """Return normalised key → what is said of it.

    Raises:
        FileUnreadable: no YAML, no mapping, or beyond the bounds.
    """
    root = compose(data, name).root
    if root is None:
        return {}
    if not isinstance(root, yamltext.Mapping):
        raise FileUnreadable("is no mapping of titles", where=name, hint="mend or remove it")
    return {normalise(key): _metadata(value) for key, (_, value) in root.own().items()}


def with_values(entries: Sequence[Entry], values: Mapping[str, Metadata]) -> list[Entry]:
    """Return the entries with what the file says in place of their comments; those it does not name as they are."""
    keys = keys_of(entries)
    found = [values.get(normalise(key)) for key in keys]
    return [
        entry if meta is None else replace(entry, meta=meta, marker=False)
        for entry, meta in zip(entries, found, strict=True)
    ]


def render(lines: Iterable[Line]) -> bytes:
    """Return the file."""
    return (HEAD + "".join(f"{_quoted(line.key)}: {{{', '.join(_values(line))}}}\n" for line in lines)).encode()


def _values(line: Line) -> Iterator[str]:
    yield f"ref: {line.pair.ref}"
    yield f"last: {line.pair.last.isoformat() if line.pair.last else 'none'}"
    yield f"decay: {line.state.value}"
    yield f"handle: {line.handle}"
    for key, value in line.extra:
        if key not in KNOWN:
            yield f"{key if _PLAIN.fullmatch(key) else _quoted(key)}: {_quoted(value)}"


def _quoted(text: str) -> str:
    """Return a double-quoted scalar: JSON's, with what YAML does not print escaped too."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def _metadata(node: Node) -> Metadata:
    own = node.own() if isinstance(node, yamltext.Mapping) else {}
    texts = {key: value.text for key, (_, value) in own.items() if isinstance(value, Scalar)}
    told = [f"{key}:{texts[key]}" for key in KNOWN[:3] if key in texts and re.fullmatch(r"[\w.:+ -]+", texts[key])]
    comment = parse_comment(f"<!-- {' | '.join(told)} -->")
    meta = comment.meta if comment else Metadata(None, None, False, None)
    extra = tuple((key, text) for key, text in texts.items() if key not in KNOWN)
    return replace(meta, extra=extra)
