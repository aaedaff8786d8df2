"""What must come out: told by the generator as it writes, so that no file is ever read to know it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass
class Lesson:
    """An entry: its text, the number its file had at first sight, and what a person did to that number."""

    title: str
    body: str
    kind: str
    file: str
    created: date
    ident: str = ""
    base_ref: int = 0
    covers: date | None = None
    earns_from: date | None = None
    adjust: int = 0
    present: bool = True

    @property
    def handle(self) -> str:
        norm = " ".join(self.title.lower().replace("`", "").replace("*", "").split())
        bits = int.from_bytes(hashlib.sha256(norm.encode()).digest()[:4], "big") >> 2
        return "k-" + "".join(ALPHABET[bits >> shift & 31] for shift in range(25, -1, -5))

    def block(self) -> str:
        ident = f"[{self.ident}] " if self.ident else ""
        lines = [f"- [{self.kind}] {ident}**{self.title}** — {self.body} ({self.created})"]
        if self.base_ref:
            lines.append(f"  <!-- ref:{self.base_ref} | last:{self.covers or 'none'} | decay:active -->")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Fact:
    """One agent-written block that cites a lesson."""

    title: str
    block: str
    session: str
    day: date


@dataclass(frozen=True)
class Number:
    ref: int
    last: date | None
    citations: int
    sessions: int


@dataclass
class Oracle:
    """Knows each logical record, once."""

    lessons: dict[str, Lesson]
    facts: set[Fact] = field(default_factory=set)

    def cite(self, lesson: Lesson, block: str, session: str, day: date) -> None:
        self.facts.add(Fact(lesson.title, block, session, day))

    def number(self, lesson: Lesson) -> Number:
        since = lesson.earns_from or date.min
        counting = [f for f in self.facts if f.title == lesson.title and f.day >= since]
        references = {(f.session, f.day) for f in counting}
        added = sum(1 for _, day in references if day > (lesson.covers or date.min))
        days = [day for _, day in references] + ([lesson.covers] if lesson.covers else [])
        return Number(
            max(lesson.base_ref + lesson.adjust + added, 0),
            max(days, default=None),
            len({f.block for f in counting}),
            len({session for session, _ in references}),
        )

    def numbers(self) -> dict[str, Number]:
        return {title: self.number(lesson) for title, lesson in self.lessons.items() if lesson.present}
