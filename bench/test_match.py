"""How fast titles are found: the answer is checked first, then kbd and other ways are timed on the same text."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.naive import ENGINES
from bench.synthetic import Writer
from kbd.core.match import Matcher, Pattern, PatternKind

CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for case in tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))["case"]
}
RUNS = [(name, engine) for name, case in CASES.items() for engine in ("kbd", *case["engines"])]


@lru_cache(maxsize=1)
def world(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (titles, messages) of a case."""
    case = CASES[name]
    writer = Writer(case["zh"])
    titles = writer.titles(case["titles"])
    text = writer.text(titles, case["chars"], case.get("cited", 0.02))
    step = case.get("message_chars", len(text))
    return tuple(titles), tuple(text[at : at + step] for at in range(0, len(text), step))


def patterns(titles: tuple[str, ...]) -> list[Pattern]:
    return [Pattern(title, PatternKind.TITLE, (number,)) for number, title in enumerate(titles)]


@pytest.mark.parametrize(("name", "engine"), RUNS, ids=[f"{name}-{engine}" for name, engine in RUNS])
def test_find(benchmark: BenchmarkFixture, name: str, engine: str) -> None:
    case = CASES[name]
    titles, messages = world(name)
    matcher = Matcher(patterns(titles))
    matches = [match for message in messages for match in matcher.find(message)]
    right = {match.pattern for match in matches}
    assert (len(matches), len(right)) == (case["matches"], case["found"])

    find = ENGINES[engine](titles)
    found = {number for message in messages for number in find(message)}
    assert engine not in ("kbd", "find_loop") or found == right
    benchmark.group = name
    benchmark.extra_info.update(
        case=name,
        engine=engine,
        bytes=sum(len(message.encode()) for message in messages),
        missed=len(right - found),
        extra=len(found - right),
    )
    benchmark.pedantic(lambda: [find(message) for message in messages], rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("count", [179, 1_000, 10_000])
def test_build(benchmark: BenchmarkFixture, count: int) -> None:
    given = patterns(tuple(Writer(0.5).titles(count)))
    assert len(Matcher(given).patterns) == count
    benchmark.group = "build"
    benchmark.extra_info.update(case=f"build-{count}", engine="kbd", bytes=sum(len(one.text.encode()) for one in given))
    benchmark.pedantic(Matcher, args=(given,), rounds=5, warmup_rounds=1)


def test_hostile_run(benchmark: BenchmarkFixture) -> None:
    matcher = Matcher([Pattern("=" * (101 + n), PatternKind.TITLE, (n,)) for n in range(100)])
    text = "=" * 2_000_000
    assert len(matcher.find(text)) == 10_000
    benchmark.group = "hostile"
    benchmark.extra_info.update(case="hostile-nested-run-2m", engine="kbd", bytes=len(text))
    benchmark.pedantic(matcher.find, args=(text,), rounds=3)
