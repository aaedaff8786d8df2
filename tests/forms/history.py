"""A logical history: sessions in which an agent says and does things that cite a small base, and what they must count.

Nothing here knows a format. `History.numbers` is what each format and form of the history must come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from tests.e2e.oracle import Lesson

TODAY = datetime(2026, 3, 20, 12, tzinfo=UTC)
FIRST = datetime(2026, 3, 1, 2, tzinfo=UTC)

TITLES = (
    "Backoff must be capped", "Lock fd leaked on exception path", "Build cache", "C++ ABI break", "缓存必须有上限",
    "Release: build, verify, tag, publish", "Naïve datetime compared with aware", "Retry storm", "日志里不能出现密钥",
)  # fmt: skip
LESSONS = tuple(
    Lesson(title, f"because of case {i}, and what was done about it", "pitfall", "kb.md", date(2026, 2, 1),
           "KD07" if i == 1 else "")
    for i, title in enumerate(TITLES)
)  # fmt: skip
BASE = "# Lessons\n\n" + "".join(lesson.block() for lesson in LESSONS)


@dataclass(frozen=True)
class Part:
    """One block: prose, or work with a tool (`copied` is what the agent searched for or replaced, not its words)."""

    text: str
    cites: frozenset[int]
    copied: str = ""
    is_tool: bool = False
    is_shell: bool = False


@dataclass(frozen=True)
class Turn:
    number: int
    at: datetime
    parts: tuple[Part, ...]

    @property
    def id(self) -> str:
        return str(UUID(int=0x5EED << 96 | self.number))


@dataclass(frozen=True)
class Session:
    """A session; a fork or sub-agent (`sub`) begins with turns of its parent, in formats that copy them."""

    number: int
    began: datetime
    own: tuple[Turn, ...]
    kind: str = "main"
    parent: Session | None = None
    copied: tuple[Turn, ...] = ()

    @property
    def id(self) -> str:
        return str(UUID(int=0xABCDEF << 100 | self.number))

    @property
    def trunk(self) -> Session:
        return self.parent.trunk if self.kind == "sub" and self.parent else self

    @property
    def visible(self) -> tuple[Turn, ...]:
        return self.copied + self.own


@dataclass(frozen=True)
class History:
    sessions: tuple[Session, ...]

    def numbers(self, times: str) -> dict[str, tuple[int, str | None]]:
        """Return ref and last by title; `times`: of the record, of the session's start, or observed (today)."""
        found: dict[int, set[tuple[int, date]]] = {}
        for session in self.sessions:
            for turn in session.own:
                at = {"record": turn.at, "session": session.began, "observed": TODAY}[times]
                for cited in (c for part in turn.parts for c in part.cites):
                    found.setdefault(cited, set()).add((session.trunk.number, at.date()))
        return {
            title: (len(found.get(i, ())), max((str(d) for _, d in found.get(i, ())), default=None))
            for i, title in enumerate(TITLES)
        }


@st.composite
def _parts(draw: st.DrawFn, number: int, again: str) -> Part:
    """Draw a part; `again` are words the session may have said before."""
    cites = draw(st.lists(st.integers(0, len(TITLES) - 2), max_size=2, unique=True))
    name = again or f"step {number}"
    words = [f"{name}:", *(f"per {_naming(LESSONS[c], draw(st.integers(0, 5)))} I go on," for c in cites), "done."]
    is_tool = draw(st.booleans())
    copied = TITLES[draw(st.integers(0, len(TITLES) - 1))] if is_tool else ""
    return Part(" ".join(words), frozenset(cites), copied, is_tool, is_tool and draw(st.booleans()))


def _naming(lesson: Lesson, way: int) -> str:
    match way:
        case 0:
            return f"[{lesson.handle}]"
        case 1:
            return lesson.title.replace(" ", "\n", 1)
        case 2 if lesson.ident:
            return lesson.ident
        case 3:
            return lesson.title.upper()
        case _:
            return lesson.title


@st.composite
def histories(draw: st.DrawFn, kinds: Sequence[str] = (), *, deep: bool = True) -> History:
    """Draw a history; `kinds` of sessions beside `main` that the format knows, forks of forks where `deep`."""
    sessions: list[Session] = []
    number = 0
    offsets = sorted(draw(st.lists(st.integers(0, 8), min_size=1, max_size=4)))
    for i, days in enumerate(offsets):
        began = FIRST + timedelta(days=days, hours=2 * i)
        own, at = [], began
        for _ in range(draw(st.integers(0 if i else 1, 5))):
            number += 1
            at += timedelta(days=draw(st.sampled_from((0, 0, 1, 2))), seconds=97)
            again = f"again {i}" if draw(st.integers(0, 3)) == 0 else ""
            parts = [draw(_parts(number * 10 + k, again)) for k in range(draw(st.integers(1, 3)))]
            own.append(Turn(number, at, tuple(parts)))
        sessions.append(_related(draw, Session(i + 1, began, tuple(own)), sessions, kinds, deep=deep))
    return History(tuple(sessions))


def _related(draw: st.DrawFn, one: Session, before: Sequence[Session], kinds: Sequence[str], *, deep: bool) -> Session:
    parents = [s for s in before if s.kind != "sub" and (deep or s.kind == "main")]
    kind = draw(st.sampled_from(("main", *kinds))) if parents else "main"
    if kind == "main":
        return one
    parent = draw(st.sampled_from(parents))
    past = [turn for turn in parent.visible if turn.at < one.began]
    copied = tuple(past[: draw(st.integers(0, len(past)))])
    return Session(one.number, one.began, one.own, kind, parent, copied)
