"""Damages seeds: what agents, crashes and enemies could make of a record."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.corpus import Seed

WHOLE_RECORDS = 0.7
"""The share of mutations that leave records well-formed: damage of bytes alone never gets past the JSON parser."""
DEEP = 3000
ODD_TEXTS = (
    "", "\0", "\ud800", "null", "[", '{"', "<!-- ref:1 -->", "<<<<<<< SEARCH\n", "```\n", "####", "#### /run x", "> ",
    "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y", "cat <<'EOF'\nx\nEOF", "$(" * 400, "'" * 999, "`" * 999,
    "((" * 500, "<a><b>" * 200, "<read_file><path>x", "[k-7fq2mz]", "Lock fd leaked on exception path", "缓存必须有",
    "\x1b[31m", "\u2028\u0085\x0c", "2026-03-01T02:00:00Z", "9999-12-31T23:59:59+23:59", "0000-00-00", "1" * 400, "-1",
    "1e400", "../../etc/passwd", "/" * 999, "e\u0301" * 300, "İ" * 300, "=" * 3000, " " * 3000, "\t\n" * 900,
    "a" * 9000, "- **" * 500, "\\" * 999, "\U0001f600" * 99,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 10**300, -(10**30), 1e308, float("nan"), float("inf"), [], {}, [[]],
    [None], {"": None}, 253402300800, 1772330400000, 1772330400000000,
)  # fmt: skip
JUNK = (b"", b"\0" * 700, b"\r", b"\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"}{", b'"', b"\\", b"\xed\xa0\x80")


def mutated(seed: Seed, others: tuple[Seed, ...], rng: random.Random) -> Seed:
    """Return a seed damaged in one to four ways."""
    records = seed.data.split(b"\n")
    for _ in range(rng.randrange(1, 5)):
        if rng.random() < WHOLE_RECORDS and _alter_record(records, rng):
            continue
        records = _shuffled(records, others, rng) if rng.random() < 0.5 else _torn(records, rng)
    relpath = rng.choice(others).relpath if rng.random() < 0.05 else seed.relpath
    return Seed(relpath, b"\n".join(records))


def _alter_record(records: list[bytes], rng: random.Random) -> bool:
    i = rng.randrange(len(records))
    try:
        value = json.loads(records[i])
    except (ValueError, RecursionError):
        return False
    for _ in range(rng.randrange(1, 4)):
        value = _altered(value, rng)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((",", ":"), (", ", ": "))))
    records[i] = _repeated_key(text, rng).encode("utf-8", "surrogatepass")
    return True


def _altered(value: Any, rng: random.Random) -> Any:
    """Return the value with one place in it changed."""
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack and len(places) < 2000:
        one = stack.pop()
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, child in inner:
            places.append((one, key))
            stack.append(child)
    if not places or rng.random() < 0.02:
        return _odd(value, rng)
    holder, key = rng.choice(places)
    rng.choice(_EDITS)(holder, key, rng)
    return value


def _put_odd(holder: Any, key: Any, rng: random.Random) -> None:
    holder[key] = _odd(holder[key], rng)


def _drop(holder: Any, key: Any, rng: random.Random) -> None:
    del holder[key]


def _rename(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[rng.choice((key.upper(), f"{key}_", "type", "id", "content", "role", "text"))] = holder.pop(key)


def _double(holder: Any, key: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), holder[key])


def _wrap(holder: Any, key: Any, rng: random.Random) -> None:
    child = holder[key]
    holder[key] = rng.choice(([child], {"text": child}, {"content": [child]}, json.dumps(child), str(child)))


Edit = Callable[[Any, Any, random.Random], None]
_EDITS: tuple[Edit, ...] = (_put_odd, _put_odd, _put_odd, _drop, _rename, _double, _wrap)


def _odd(value: Any, rng: random.Random) -> Any:
    match rng.randrange(6):
        case 0:
            return copy.deepcopy(rng.choice(ODD_VALUES))  # what is put in may be altered next
        case 1 if isinstance(value, str):
            at = rng.randrange(len(value) + 1)
            return value[:at] + rng.choice(ODD_TEXTS) + value[at:]
        case 2 if isinstance(value, str):
            return value[: rng.randrange(len(value) + 1)]
        case 3 if isinstance(value, (int, float)):
            return value * rng.choice((-1, 0, 1000, 10**9, 10**40))
        case 4:
            return [value] * rng.randrange(40)
        case _:
            return rng.choice(ODD_TEXTS)


def _repeated_key(text: str, rng: random.Random) -> str:
    """Say a key twice, or nest beyond what recursion bears: no value in memory can."""
    chance = rng.random()
    if chance < 0.05 and text.startswith("{"):
        return text[:-1] + "," + text[1:] if len(text) > 2 else text
    if chance < 0.08:
        return text.replace("null", "[" * DEEP + "]" * DEEP, 1)
    return text.replace("0", "1" * 5000, 1) if chance < 0.1 else text


def _shuffled(records: list[bytes], others: tuple[Seed, ...], rng: random.Random) -> list[bytes]:
    """Drop, repeat, move or splice in whole records."""
    i = rng.randrange(len(records))
    match rng.randrange(4):
        case 0 if len(records) > 1:
            return records[:i] + records[i + 1 :]
        case 1:
            return [*records, records[i]]
        case 2:
            return rng.sample(records, len(records))
        case _:
            foreign = rng.choice(others).data.split(b"\n")
            return records[:i] + foreign[: rng.randrange(len(foreign) + 1)] + records[i:]


def _torn(records: list[bytes], rng: random.Random) -> list[bytes]:
    """Damage bytes: cut, flip, glue, NULs, carriage returns, a mark at the start."""
    data = b"\n".join(records)
    i = rng.randrange(len(data) + 1)
    j = min(len(data), i + rng.randrange(200))
    junk = rng.choice(JUNK)
    match rng.randrange(4):
        case 0:
            data = data[:i] + junk + data[j:]
        case 1:
            data = junk + data
        case 2:
            data = data.replace(b"\n", junk, rng.randrange(1, 4))
        case _:
            data = data[:i] + bytes(b ^ 1 << rng.randrange(8) for b in data[i:j]) + data[j:]
    return data.split(b"\n")
