"""Claude-Code-like transcripts of any size from a seed, with the counters that must come out of them.

`python -m bench.transcripts DIR --mb 1000` makes `DIR/claude` (the transcripts), `DIR/expected.json` (references by
title) and what `lay_base` makes for each number of entries asked for. The shares follow what was measured on real
files: 29 % of the lines are an assistant's, about 9.6 % of the bytes are text that an agent wrote, tool results stand
twice in their line, sub-agents have files of their own, and one record in 200 cites an entry. A quarter of the prose is
in the titles' own words, never three of them in a row, even over two texts: no title stands where none was cited.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from bench.synthetic import Writer
from kbd.core.normal import width

NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)
CITED_TITLES = 179
RECORDS_PER_CITATION = 200
RECORDS_PER_SESSION = 600
SUBAGENT_SHARE = 0.15
BIG_RECORD = 8 << 20
LONG_LINE = 200_000_000

_DAYS = 60
_LONE = "{lone surrogate}"
_POOL = 3_000
_TOOLS = ("Bash",) * 8 + ("Read",) * 5 + ("Edit",) * 4 + ("Grep",) * 3 + ("Write", "TodoWrite", "Task")
_OTHER = ("user",) * 9 + ("progress",) * 8 + ("attachment",) * 3 + ("system", "snapshot", "queue")
_COMMANDS = (
    "cd /w/app && git status --short | head -20",
    "pytest -x -q tests/test_{n}.py 2>&1 | tail -30",
    "grep -rn 'retry_{n}' src/ --include='*.py' | head",
    "git add -A && git commit -m \"$(cat <<'EOF'\nFix job {n}\n\n{prose}\nEOF\n)\"",
    "python - <<'PY'\nimport json\nprint(json.load(open('out/{n}.json'))['total'])\nPY",
    "sed -n '{n},+40p' src/app/worker.py",
    "for f in build/*.log; do tail -n 3 \"$f\"; done; make -j4 all > build/{n}.log 2>&1 || cat build/{n}.log",
)


def titles_of(count: int) -> list[str]:
    """Return the titles of a base of `count` entries; a smaller base has the first ones of a larger."""
    wide = [title for title in Writer(0.1).titles(max(count, 12_000)) if width(title) >= 8]
    return wide[:count]


def lay_base(root: Path, entries: int) -> Path:
    """Write a knowledge base of so many entries and a configuration that reads `root/claude`; return the latter."""
    folder = root / f"base-{entries}"
    folder.mkdir(parents=True, exist_ok=True)
    text = Writer(0.1)
    lines = ["# Lessons", ""]
    for number, title in enumerate(titles_of(entries)):
        lines.append(f"- [pitfall] **{title}** — n{number} {text.text([title], 90, cited=0).replace(chr(10), ' ')}"
                     " (2026-01-15)")
    (folder / "lessons.md").write_text("\n".join(lines) + "\n", "utf-8")
    config = folder / "config.yaml"
    config.write_text(
        "bases:\n  - {name: lessons, files: [lessons.md]}\n"
        "sources:\n  - {agent: claude-code, root: ../claude}\n", "utf-8",
    )
    return config


@dataclass(slots=True)
class Shares:
    """What the transcripts hold: lines, assistant lines, bytes, bytes of agent-written text, citations."""

    records: int = 0
    assistant: int = 0
    bytes: int = 0
    agent_bytes: int = 0
    citations: int = 0
    files: int = 0
    references: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the sums, and references by title."""
        return {
            "files": self.files, "records": self.records, "bytes": self.bytes, "citations": self.citations,
            "assistant_lines": round(self.assistant / max(self.records, 1), 3),
            "agent_text": round(self.agent_bytes / max(self.bytes, 1), 3),
            "references": {title: len(days) for title, days in sorted(self.references.items())},
        }


class Prose:
    """Text in pieces that are made once and used again, to be fast."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        words = Writer(0.0)
        terms = Writer(0.0).titles(400)
        pieces = [words.text(["-"], 80, cited=0).split(",") for _ in range(4)]
        plain = sorted({word for piece in pieces for part in piece for word in part.split()} | {"lorem", "quux"})
        pairs = sorted({" ".join(title.split()[:2]) for title in terms})
        self.pool = [self._sentence(plain, pairs) for _ in range(_POOL)]

    def _sentence(self, plain: Sequence[str], pairs: Sequence[str]) -> str:
        parts: list[str] = []
        while sum(map(len, parts)) < 120:
            parts.append(self.random.choice(pairs) + " zz" if self.random.random() < 0.25 else
                         " ".join(f"{self.random.choice(plain)}q" for _ in range(4)))
        if self.random.random() < 0.1:
            parts.append("".join(chr(0x5000 + self.random.randrange(3000)) for _ in range(20)) + "。")
        return self.random.choice(("{}.\n", "{};  ", "    {}\n", "`{}` ", "* **{}**\n", "\"{}\", ")).format(
            " ".join(parts))

    def text(self, mean: int) -> str:
        """Return prose, `mean` characters long on average; few are long, most are short."""
        size = min(self.random.expovariate(1 / mean), mean * 12) + 20
        return "".join(self.random.choices(self.pool, k=int(size / 135) + 1))[: int(size) + 1] + " zz"


class Session:
    """One session: its records in order, as lines."""

    def __init__(self, prose: Prose, titles: Sequence[str], shares: Shares, number: int) -> None:
        self.prose, self.random, self.titles, self.shares = prose, prose.random, titles, shares
        self.number = number
        self.name = str(self._uuid())
        self.cwd = f"/w/app{number % 7}"
        self.at = NOW - timedelta(days=self.random.random() * _DAYS + 1)
        self.message_first = number % 2 == 0
        self.serial = 0
        self.message, self.parent, self.agent, self.cited = "", None, "", ""

    def lines(self, count: int, agent: str) -> Iterator[bytes]:
        """Yield the lines of one file of the session; `agent` is the sub-agent's id, "" for the trunk."""
        self.agent = agent
        for _ in range(count):
            self.at += timedelta(milliseconds=self.random.randrange(200, 20_000))
            assistant = self.random.random() < 0.29
            record = self._assistant() if assistant else self._other()
            data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            self.shares.records += 1
            self.shares.assistant += assistant
            self.shares.bytes += len(data)
            yield data

    def _uuid(self) -> str:
        bits = f"{self.random.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-{bits[12:16]}-{bits[16:20]}-{bits[20:]}"

    def frame(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a record of a kind, with what all records carry."""
        uuid = self._uuid()
        head: dict[str, Any] = {"parentUuid": self.parent, "isSidechain": bool(self.agent), "userType": "external",
                                "cwd": self.cwd, "sessionId": self.name, "version": "2.1.226", "gitBranch": "main"}
        if self.agent:
            head["agentId"] = self.agent
        tail = {"uuid": uuid, "timestamp": self._stamp()}
        self.parent = uuid
        return head | body | {"type": kind} | tail if self.message_first else head | {"type": kind} | body | tail

    def _stamp(self) -> str:
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _assistant(self) -> dict[str, Any]:
        self.serial += 1
        if not self.message or self.random.random() < 0.6:
            self.message, self.cited = f"msg_{self.number}_{self.serial}", ""
            self.began = self.at
        block = self._block()
        usage = {"input_tokens": 4, "cache_creation_input_tokens": 1630, "cache_read_input_tokens": 48_211,
                 "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1630},
                 "output_tokens": 311, "service_tier": "standard"}
        message = {"model": "claude-opus-4-5", "id": self.message, "type": "message", "role": "assistant",
                   "content": [block], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return self.frame("assistant", {"message": message, "requestId": f"req_{self.number}_{self.serial}"})

    def _block(self) -> dict[str, Any]:
        share = self.random.random()
        if share < 0.15:
            text = self.prose.text(500)
            self.shares.agent_bytes += len(text.encode())
            return {"type": "thinking", "thinking": text, "signature": "Eq" + "".join(
                self.random.choices("ABCDEFGHabcdefgh01234567+/", k=400))}
        if share < 0.5:
            text = self._cite(self.prose.text(1300))
            self.shares.agent_bytes += len(text.encode())
            return {"type": "text", "text": text}
        name, tool_input = self._tool()
        self.shares.agent_bytes += sum(len(v.encode()) for v in tool_input.values() if isinstance(v, str))
        return {"type": "tool_use", "id": f"toolu_{self.number}_{self.serial}", "name": name, "input": tool_input}

    def _tool(self) -> tuple[str, dict[str, Any]]:
        name = self.random.choice(_TOOLS)
        path = f"{self.cwd}/src/part{self.random.randrange(40)}/worker.py"
        match name:
            case "Bash":
                command = self.random.choice(_COMMANDS)
                return name, {"command": command.replace("{n}", str(self.random.randrange(900))).replace(
                    "{prose}", self.prose.text(200)), "description": self.prose.text(40)}
            case "Read":
                return name, {"file_path": path, "offset": 100, "limit": 200}
            case "Edit":
                return name, {"file_path": path, "old_string": self.prose.text(500),
                              "new_string": self.prose.text(800), "replace_all": False}
            case "Grep":
                return name, {"pattern": "def retry_.*\\(", "path": f"{self.cwd}/src", "output_mode": "content"}
            case "Write":
                return name, {"file_path": path, "content": self.prose.text(5500)}
            case "TodoWrite":
                return name, {"todos": [{"content": self.prose.text(60), "status": "pending", "activeForm": "Doing"}
                                        for _ in range(6)]}
            case _:
                return name, {"description": "Look into it", "prompt": self.prose.text(1500),
                              "subagent_type": "general-purpose"}

    def _cite(self, text: str) -> str:
        """Cite an entry in a text block now and then, once a message; there is one such block in ten records."""
        if self.cited or self.random.random() > 10 / RECORDS_PER_CITATION:
            return text
        self.cited = title = self.random.choice(self.titles)
        form = self.random.choice(("{}", "**{}**", "`{}`"))
        shown = self.random.choice((title, title.upper(), title.replace(" ", "\n", 1)))
        self.shares.citations += 1
        self.shares.references.setdefault(title, set()).add((self.name, self.began.date().isoformat()))
        return f"{text}\nAs said zz {form.format(shown)} zz we go on."

    def _other(self) -> dict[str, Any]:
        match self.random.choice(_OTHER):
            case "user":
                text = self.prose.text(2000)
                result = {"tool_use_id": f"toolu_{self.number}_{self.serial}", "type": "tool_result", "content": text}
                copy = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
                return self.frame("user", {"message": {"role": "user", "content": [result]}, "toolUseResult": copy})
            case "progress":
                return self._progress()
            case "attachment":
                content = {"type": "Project", "path": f"{self.cwd}/CLAUDE.md", "content": self.prose.text(6000)}
                shown = {"type": "nested_memory", "path": f"{self.cwd}/CLAUDE.md", "content": content}
                return self.frame("attachment", {"attachment": shown})
            case "system":
                return self.frame("system", {"subtype": "turn_duration", "durationMs": 8123, "isMeta": False})
            case "snapshot":
                backups = {f"src/part{n}/worker.py": {"backupFileName": f"{n:x}@v2", "version": 2} for n in range(30)}
                return {"type": "file-history-snapshot", "messageId": self._uuid(), "isSnapshotUpdate": False,
                        "snapshot": {"trackedFileBackups": backups, "timestamp": self._stamp()}}
            case _:
                return {"type": "queue-operation", "operation": "enqueue", "timestamp": self._stamp(),
                        "sessionId": self.name, "content": self.prose.text(200)}

    def _progress(self) -> dict[str, Any]:
        if self.random.random() < 0.7:
            shown: dict[str, Any] = {"type": "bash_progress", "output": self.prose.text(700), "fullOutput": "",
                                     "elapsedTimeSeconds": 3, "totalLines": 40}
        else:  # a whole message of a sub-agent, which its own file holds as well
            message = {"id": "msg_child", "type": "message", "role": "assistant",
                       "content": [{"type": "text", "text": f"{self.prose.text(700)} {self.titles[0]} "}]}
            shown = {"type": "agent_progress", "agentId": "a1", "message": {"type": "assistant", "message": message}}
        return self.frame("progress", {"data": shown, "toolUseID": f"toolu_{self.number}_{self.serial}"})


def make(root: Path, size: int, seed: int = 20_260_611) -> Shares:
    """Write transcripts of `size` bytes or a little more below `root/claude`, and `root/expected.json`."""
    prose, shares, titles, number = Prose(seed), Shares(), titles_of(CITED_TITLES), 0
    while shares.bytes < size:
        number += 1
        session = Session(prose, titles, shares, number)
        folder = root / "claude" / "projects" / f"-w-app{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{session.name}.jsonl", session, "")
        if prose.random.random() < SUBAGENT_SHARE:
            agents = folder / session.name / "subagents"
            agents.mkdir(parents=True)
            _write(agents / f"agent-{number:07x}.jsonl", session, f"{number:07x}")
    (root / "expected.json").write_text(json.dumps(shares.as_json(), indent=1) + "\n", "utf-8")
    return shares


def _write(path: Path, session: Session, agent: str) -> None:
    count = int(session.random.expovariate(1 / RECORDS_PER_SESSION)) + 1
    with open(path, "wb") as file:
        file.writelines(session.lines(count, agent))
    os.utime(path, (session.at.timestamp(), session.at.timestamp()))
    session.shares.files += 1


def make_monster(root: Path, line: int, astral: int, seed: int = 1) -> Shares:
    """Write one session with an ordinary beginning, a line of `line` bytes, then `astral` records of nearly 8 MiB of
    agent text in characters outside the basic plane, each citing an entry at its end, then an ordinary end.
    """
    shares, titles = Shares(), titles_of(CITED_TITLES)
    session = Session(Prose(seed), titles, shares, 0)
    path = root / "claude" / "projects" / "-w-app0" / f"{session.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(session.lines(200, ""))
        _write_long_line(file, line)
        for number in range(astral):
            file.write(_astral(session, number))
        file.writelines(session.lines(200, ""))
    shares.files, shares.bytes = 1, path.stat().st_size
    (root / "expected.json").write_text(json.dumps(shares.as_json(), indent=1) + "\n", "utf-8")
    return shares


def _write_long_line(file: BinaryIO, size: int) -> None:
    file.write(b'{"type":"user","message":{"role":"user","content":"')
    for _ in range(size >> 20):
        file.write(b"x" * (1 << 20))
    file.write(b'"}}\n')


def _astral(session: Session, number: int) -> bytes:
    """Return a record of nearly 8 MiB: as UTF-8, escaped, or with a lone surrogate, which needs the patient decoder."""
    title, escaped = session.titles[number % len(session.titles)], number % 3 == 1
    filler = "".join(chr(0x1F300 + (number * 31 + i * 7) % 512) for i in range(61)) + " "
    repeated = (BIG_RECORD - 4096) // len(json.dumps(filler, ensure_ascii=escaped).encode())
    text = filler * repeated + f"{_LONE if number % 3 == 2 else ''} As said zz {title} zz we go on."
    session.at += timedelta(seconds=60)
    session.serial += 1
    session.shares.references.setdefault(title, set()).add((session.name, session.at.date().isoformat()))
    session.shares.citations += 1
    content = [{"type": "text", "text": text}]
    message = {"id": f"msg_big_{number}", "role": "assistant", "model": "m", "content": content}
    record = session.frame("assistant", {"message": message})
    line = json.dumps(record, ensure_ascii=escaped, separators=(",", ":")) + "\n"
    return line.encode().replace(_LONE.encode(), b"\\ud83d")


def main() -> int:
    """Make a folder for a run of kbd."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--entries", type=int, nargs="*", default=[CITED_TITLES])
    parser.add_argument("--monster", action="store_true", help="one file: a 200 MB line, then records of 8 MiB")
    given = parser.parse_args()
    size = given.mb * 1_000_000
    shares = make_monster(given.folder, LONG_LINE, max(1, (size - LONG_LINE) // BIG_RECORD)) if given.monster else make(
        given.folder, size)
    for entries in given.entries:
        lay_base(given.folder, entries)
    told = shares.as_json()
    del told["references"]
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
