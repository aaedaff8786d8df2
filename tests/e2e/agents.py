"""Agents at work: Claude Code sessions and text logs, with all that must not count beside what must."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from tests.e2e.oracle import Lesson, Oracle
from tests.e2e.spool import Spool

Block = tuple[dict[str, object], str, tuple[Lesson, ...]]
"""A content block, its identity for the oracle, and the lessons it cites."""

SENTENCES = (
    "Per {}, I close the handle first.",
    "This is exactly {} again, so I retry.",
    "I apply {} to the parser now.",
    "\u201c{}\u201d bit us here as well.",
    "Following `{}`: done.",
    "这里要用 {} 的做法。",
)


@dataclass
class Shared:
    """What all agents of a world share."""

    rng: random.Random
    spool: Spool
    oracle: Oracle
    today: date
    past_days: int = 12
    number: int = 0

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def lesson(self) -> Lesson:
        return self.rng.choice(list(self.oracle.lessons.values()))

    def time(self) -> datetime:
        """Return a time of the last days, never the same twice, never after 11:00 of today."""
        day = self.today - timedelta(days=self.rng.choice((0, 0, self.rng.randrange(self.past_days))))
        second = self.next_number() % 32_000
        return datetime.combine(day, time(2), UTC) + timedelta(seconds=second)

    def naming(self, lesson: Lesson) -> str:
        """Return words that cite a lesson: its title, wrapped perhaps, its id or its handle."""
        ways = [lesson.title, lesson.title, lesson.title, f"[{lesson.handle}]"]
        if lesson.title.upper().lower() == lesson.title.lower():  # not so where an ß becomes SS
            ways.append(lesson.title.upper())
        if " " in lesson.title:
            ways.append(lesson.title.replace(" ", "\n", 1))
        if lesson.ident:
            ways.append(lesson.ident)
        return self.rng.choice(ways)

    def sentence(self, lesson: Lesson) -> str:
        return self.rng.choice(SENTENCES).format(self.naming(lesson))


@dataclass
class Session:
    """A transcript file: the session it counts for, and the lines written into it."""

    id: str
    path: Path
    trunk: str
    project: Path
    lines: list[dict[str, object]] = field(default_factory=list)
    seen: bool = False


class Claude:
    """Writes sessions below `projects`."""

    def __init__(self, shared: Shared, projects: Path, knowledge: Path) -> None:
        self.shared, self.rng = shared, shared.rng
        self.projects, self.knowledge = projects, knowledge
        self.sessions: list[Session] = []

    def act(self) -> None:
        """Do one thing an agent does."""
        act: Callable[[], None] = self.rng.choice(
            (
                self.talk,
                self.talk,
                self.talk,
                self.stream,
                self.edit,
                self.look_up,
                self.noise,
                self.list_all,
                self.begin,
                self.delegate,
                self.resume,
                self.compact,
            )  # fmt: skip
        )
        act()

    def session(self) -> Session:
        if not self.sessions or self.rng.random() < 0.1:
            self.begin()
        return self.rng.choice(self.sessions[-6:])

    def begin(self) -> None:
        name = f"s{self.shared.next_number()}"
        folder = self.projects / self.rng.choice(("-w-app", "-w-lib"))
        self.sessions.append(Session(name, folder / f"{name}.jsonl", name, folder))

    def delegate(self) -> None:
        """Start a sub-agent, in a folder that was not there, beside a journal that is no transcript."""
        parent = self.session()
        number = self.shared.next_number()
        folder = parent.project / parent.trunk / "subagents"
        if self.rng.random() < 0.5:
            folder = folder / "workflows" / f"wf_{number}"
            self.shared.spool.append(folder / "journal.jsonl", self._bytes(self._journal()))
        child = Session(parent.trunk, folder / f"agent-a{number}.jsonl", parent.trunk, parent.project)
        self.sessions.append(child)
        self._say(child, [self._text((self.shared.lesson(),))])

    def _journal(self) -> dict[str, object]:
        return {"type": "result", "result": self.shared.sentence(self.shared.lesson())}

    def talk(self) -> None:
        """Say several things in one message of several lines."""
        session = self.session()
        blocks: list[Block] = [({"type": "thinking", "thinking": "", "signature": "x"}, "", ())]
        for _ in range(self.rng.randrange(1, 4)):
            lessons = tuple(self.rng.sample(list(self.shared.oracle.lessons.values()), self.rng.randrange(0, 3)))
            blocks.append(self._text(lessons) if self.rng.random() < 0.7 else self._command(lessons))
        self._say(session, blocks)

    def stream(self) -> None:
        """Leave an early partial of a text that ends inside a title, then the whole text."""
        lesson = self.shared.lesson()
        block, key, lessons = self._text((lesson, self.shared.lesson()))
        text = str(block["text"])
        partial = {"type": "text", "text": text[: self.rng.randrange(1, len(text))]}
        self._say(self.session(), [(partial, key, ()), (block, key, lessons)])

    def edit(self) -> None:
        """Change a source file: the new half counts, the old one does not."""
        new, old = self.shared.lesson(), self.shared.lesson()
        number = self.shared.next_number()
        use = {
            "file_path": f"/w/app/src/f{number % 5}.py",
            "old_string": f"# {old.title} stood here",
            "new_string": f"# {new.title} guards this\nx = {number}",
        }
        self._say(self.session(), [(self._tool("Edit", use, number), f"toolu_{number}", (new,))])

    def look_up(self) -> None:
        """Search for lessons and read them: nobody cites anything."""
        lesson, number = self.shared.lesson(), self.shared.next_number()
        inputs: Sequence[tuple[str, dict[str, object]]] = (
            ("Grep", {"pattern": lesson.title, "path": "/w/app"}),
            ("Read", {"file_path": str(self.knowledge / "en.md")}),
            ("Bash", {"command": f'rg -n "{lesson.title}" /w/app | head -3'}),
            ("Bash", {"command": f"grep -c '{lesson.title}' {self.knowledge}/en.md; ls -la"}),
        )
        name, use = self.rng.choice(inputs)
        self._say(self.session(), [(self._tool(name, use, number), "", ())])

    def noise(self) -> None:
        """Write what others put into a transcript: users, hooks, summaries, progress, errors, quoted entries."""
        session, at = self.session(), self.shared.time()
        titles = "\n".join(lesson.title for lesson in self.shared.oracle.lessons.values())
        body: dict[str, object] = self.rng.choice(
            (
                {"type": "user", "message": {"role": "user", "content": f"use this:\n{titles}"}},
                {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": titles}},
                {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": titles}},
                {"type": "progress", "data": {"type": "agent_progress", "message": {"message": {"content": titles}}}},
                {"type": "system", "subtype": "compact_boundary", "content": titles},
                {"type": "assistant", "isApiErrorMessage": True, "message": self._message("e", titles, "<synthetic>")},
                {"type": "assistant", "message": self._message(f"q{self.shared.next_number()}", self._quoted())},
            )
        )
        self._put(session, self._record(session, at, body))

    def _message(self, number: str, text: str, model: str = "m-1") -> dict[str, object]:
        content = [{"type": "text", "text": text}]
        return {"id": f"msg_{number}", "role": "assistant", "model": model, "content": content}

    def _quoted(self) -> str:
        return "The file says:\n" + "".join(self.shared.lesson().block() for _ in range(2))

    def list_all(self) -> None:
        """Name a dozen lessons at once: a listing, which counts for none."""
        lessons = self.rng.sample(list(self.shared.oracle.lessons.values()), 15)
        text = "Known: " + "; ".join(lesson.title for lesson in lessons) + "."
        self._say(self.session(), [({"type": "text", "text": text}, "", ())])

    def resume(self) -> None:
        """Copy the beginning of a session into a new one, with new ids of the lines, and go on there."""
        if self.copy():
            self._say(self.sessions[-1], [self._text((self.shared.lesson(),))])

    def copy(self) -> bool:
        """Copy the beginning of a session that kbd has seen into a new one; False if there is none."""
        seen = [s for s in self.sessions if s.seen and s.lines and s.id == s.trunk]
        if not seen:
            return False
        origin = self.rng.choice(seen)
        self.begin()
        copy = self.sessions[-1]
        for line in origin.lines[: self.rng.randrange(1, len(origin.lines) + 1)]:
            self._put(copy, {**line, "sessionId": copy.id, "uuid": self._uuid()})
        return True

    def compact(self) -> None:
        """Append the last lines once more, as a compaction does, with new ids and their old times."""
        session = self.session()
        for line in session.lines[-self.rng.randrange(1, 5) :]:
            self._put(session, {**line, "uuid": self._uuid()})

    def _text(self, lessons: Sequence[Lesson]) -> Block:
        number = self.shared.next_number()
        text = " ".join([f"Step {number}.", *(self.shared.sentence(lesson) for lesson in lessons)])
        return {"type": "text", "text": text}, f"text_{number}", tuple(lessons)

    def _command(self, lessons: Sequence[Lesson]) -> Block:
        number = self.shared.next_number()
        words = " and ".join(lesson.title for lesson in lessons)
        command = self.rng.choice(('git commit -m "fix {}: {}"', 'cd /w/app && echo "{} {}" >> notes.txt')).format(
            number, words
        )
        return self._tool("Bash", {"command": command}, number), f"toolu_{number}", tuple(lessons)

    def _tool(self, name: str, use: dict[str, object], number: int) -> dict[str, object]:
        return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": use}

    def _say(self, session: Session, blocks: Sequence[Block]) -> None:
        """Write a message, a line a block, over midnight at times; tool results of others stand in between."""
        number, first = self.shared.next_number(), self.shared.time()
        if first.date() < self.shared.today and self.rng.random() < 0.2:
            first = datetime.combine(first.date(), time(23, 59, 58), UTC)
        for i, (block, key, lessons) in enumerate(blocks):
            message = {"id": f"msg_{number}", "role": "assistant", "model": "m-1", "content": [block]}
            at = first + timedelta(seconds=3 * i)
            self._put(session, self._record(session, at, {"type": "assistant", "message": message}))
            if self.rng.random() < 0.3:
                result = {"type": "tool_result", "tool_use_id": "t", "content": self.shared.lesson().title}
                body = {"type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": result}
                self._put(session, self._record(session, at, body))
            for lesson in lessons:
                self.shared.oracle.cite(lesson, key, session.trunk, first.date())

    def _record(self, session: Session, at: datetime, body: dict[str, object]) -> dict[str, object]:
        stamp = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        head = {"parentUuid": None, "uuid": self._uuid(), "timestamp": stamp, "cwd": "/w/app", "sessionId": session.id}
        return {**head, "isSidechain": session.path.name.startswith("agent-"), **body}

    def _put(self, session: Session, line: dict[str, object]) -> None:
        session.lines.append(line)
        self.shared.spool.append(session.path, self._bytes(line))

    def _bytes(self, line: dict[str, object]) -> bytes:
        return json.dumps(line, ensure_ascii=self.rng.random() < 0.3).encode() + b"\n"

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128)))


@dataclass
class Log:
    """A text log: lines with times, or with none."""

    path: Path
    timed: bool
    lines: int = 0
    seen: bool = False


class Logs:
    """Writes and rotates text logs."""

    def __init__(self, shared: Shared, folder: Path) -> None:
        self.shared, self.rng, self.folder = shared, shared.rng, folder
        self.logs = [
            Log(folder / "app.log", True),
            Log(folder / "deep" / "er" / "run.log", True),
            Log(folder / "plain.log", False),
        ]

    def act(self) -> None:
        """Write a paragraph, or rotate, copy or rename a log."""
        log = self.rng.choice(self.logs)
        others = self.rng.choice((self.rotate, self.copy, self.retire))
        act: Callable[[Log], None] = self.rng.choice((self.write, self.write, others))
        act(log)

    def write(self, log: Log) -> None:
        number, at = self.shared.next_number(), self.shared.time()
        lessons = [self.shared.lesson() for _ in range(self.rng.randrange(0, 3))]
        words = [f"step {number}", *(self.shared.sentence(lesson) for lesson in lessons)]
        text = self.rng.choice((" ", "\n  ")).join(words)
        if log.timed:
            stamp = self.rng.choice(("{:%Y-%m-%dT%H:%M:%SZ} ", "[{:%Y-%m-%d %H:%M:%S+00:00}] ")).format(at)
            data = stamp + text + self.rng.choice(("\n", "\r\n", "\n\n"))
        else:
            data = f"{text}\n\n"
        day = at.date() if log.timed else self.shared.today
        for lesson in lessons:
            self.shared.oracle.cite(lesson, f"log_{number}", f"logs:{log.path}", day)
        log.lines += data.count("\n")
        self.shared.spool.append(log.path, data.encode())

    def rotate(self, log: Log) -> None:
        """Rename the log aside; one with times is copied and truncated instead at times."""
        self.shared.spool.settle(log.path)
        if not log.path.exists():
            return
        older = sorted(log.path.parent.glob(f"{log.path.name}.*"), key=lambda p: -int(p.suffix[1:]))
        for path in older:
            path.rename(path.with_suffix(f".{int(path.suffix[1:]) + 1}"))
        aside = log.path.with_name(f"{log.path.name}.1")
        if log.timed and self.rng.random() < 0.5:
            shutil.copy(log.path, aside)
            with open(log.path, "wb"):
                pass
        else:
            log.path.rename(aside)
        log.lines, log.seen = 0, False

    def retire(self, log: Log) -> None:
        """Give a log, which kbd has seen, a name that tells nothing of the old one; a new log begins."""
        if log.seen:
            self.shared.spool.settle(log.path)
            retired = self.folder / "old" / f"r{self.shared.next_number()}.txt"
            retired.parent.mkdir(exist_ok=True)
            log.path.rename(retired)
            log.lines, log.seen = 0, False

    def copy(self, log: Log) -> None:
        """Copy a log elsewhere; the copy counts nothing again and goes on as a log of its own."""
        if log.timed and log.seen and log.lines >= 6:
            self.shared.spool.settle(log.path)
            copy = Log(self.folder / f"copy{self.shared.next_number()}.log", True, log.lines)
            shutil.copy(log.path, copy.path)
            self.logs.append(copy)
