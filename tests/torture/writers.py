"""A person with many tools, who writes into knowledge files while kbd does; each line written has a word of its own."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

KEPT_WORDS = 40
"""So many of the person's lines stay in a file; older ones the person takes out again, or the files would grow."""
GIT = ("git", "-c", "user.name=p", "-c", "user.email=p@example.org", "-c", "core.editor=true", "-c", "gc.auto=0")
_ENV = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


@dataclass
class Buffer:
    """A file as an editor has it: the text it read, the word it will add, when it saves, and the file it holds open."""

    path: Path
    text: bytes
    word: str
    due: float
    held: int | None = None


@dataclass
class Person:
    """Edits the files of a folder, a git work tree.

    Attributes:
        words: what was written and not taken out again by the person, by file.
        added: what was added with `kbd add`, by file; it stays.
        rounds: edits so far, by tool.
    """

    folder: Path
    rng: random.Random
    words: dict[Path, list[str]] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    added: dict[Path, list[str]] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.words = {path: [] for path in sorted(self.folder.glob("*.md"))}
        self.git("init", "-q", "-b", "main")
        self.git("add", "*.md")
        self.git("commit", "-qm", "begin")

    def act(self) -> None:
        """Make one edit, or begin one that is saved later; a file that an editor has open is left to it."""
        for buffer in [b for b in self.buffers if b.due <= time.monotonic()]:
            self.buffers.remove(buffer)
            self._save_late(buffer)
        free = [path for path in self.words if not any(b.path == path for b in self.buffers)]
        tools: list[Callable[[Path], None]] = [
            self.in_place, self.in_pieces, self.renamed, self.synced, self.sed, self.open_buffer, self.open_file,
        ]  # fmt: skip
        chance = self.rng.random()
        if chance < 0.03:
            self.rest()
            tools, free = [self.checkout, self.merge, self.rebase], list(self.words)
        elif chance < 0.04:
            tools = [self.kbd_add]
        if free:
            tool = self.rng.choice(tools)
            self._count(tool.__name__)
            tool(self.rng.choice(free))

    def _count(self, tool: str) -> None:
        self.rounds[tool] = self.rounds.get(tool, 0) + 1

    def rest(self) -> None:
        """Save what is open."""
        for buffer in self.buffers:
            time.sleep(max(buffer.due - time.monotonic(), 0))
            self._save_late(buffer)
        self.buffers = []

    def missing(self) -> list[str]:
        """Return the person's lines that stand in no file of the folder."""
        texts = b"".join(path.read_bytes() for path in self.folder.glob("*.md"))
        written = [*self.words.items(), *self.added.items()]
        return [f"{word} in {path.name}" for path, words in written for word in words if word.encode() not in texts]

    def _word(self) -> str:
        self.number += 1
        return f"person{self.number}x"

    def _edited(self, path: Path, text: bytes, word: str) -> bytes:
        """Return the text with a line more below an entry, and without the oldest of the person's lines."""
        lines = text.split(b"\n")
        while len(self.words[path]) >= KEPT_WORDS:
            old = self.words[path].pop(0).encode()
            lines = [line for line in lines if old not in line]
        places = [i for i, line in enumerate(lines) if line.startswith(b"- ")]
        ending = b"\r" if b"\r\n" in text else b""
        lines.insert(self.rng.choice(places) + 1 if places else len(lines), b"  noted " + word.encode() + ending)
        return b"\n".join(lines)

    def _new(self, path: Path) -> tuple[bytes, str]:
        word = self._word()
        return self._edited(path, path.read_bytes(), word), word

    def in_place(self, path: Path) -> None:
        text, word = self._new(path)
        path.write_bytes(text)
        self.words[path].append(word)

    def in_pieces(self, path: Path) -> None:
        """Save in two writes, as an editor does whose buffer is small."""
        text, word = self._new(path)
        with open(path, "r+b", buffering=0) as file:
            half = len(text) // 2
            file.write(text[:half])
            time.sleep(0.002)
            file.write(text[half:])
            file.truncate()
        self.words[path].append(word)

    def renamed(self, path: Path) -> None:
        text, word = self._new(path)
        self._replace(path, text)
        self.words[path].append(word)

    def synced(self, path: Path) -> None:
        """Replace the file and give it the time of another machine."""
        text, word = self._new(path)
        self._replace(path, text, time.time() - self.rng.uniform(100, 100_000))
        self.words[path].append(word)

    def _replace(self, path: Path, text: bytes, mtime: float | None = None) -> None:
        fresh = path.with_name(f".{path.name}.swp")
        fresh.write_bytes(text)
        if mtime is not None:
            os.utime(fresh, (mtime, mtime))
        fresh.rename(path)

    def sed(self, path: Path) -> None:
        word = self._word()
        subprocess.run(["sed", "-i", f"/^People write here/a\\\nnoted {word}\n", str(path)], check=True)
        self.words[path].append(word)

    def kbd_add(self, path: Path) -> None:
        """Add an entry by the command, as a process of its own."""
        word, home = self._word(), self.folder.parent
        command = [sys.executable, "-m", "kbd", "--config", home / "config.yaml", "--state-dir", home / "state", "add"]
        command += [f"{word} is what the person added", "for a reason", "--distinct", "--file", path]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            self.added.setdefault(path, []).append(word)
        elif not any(reason in done.stderr for reason in ("changed", "git is at work", "locked", "conflict markers")):
            raise AssertionError(done.stderr)

    def open_buffer(self, path: Path) -> None:
        """Read now and save the whole old text later, by name, whatever was written meanwhile (autosave, Obsidian)."""
        text, word = self._new(path)
        self.buffers.append(Buffer(path, text, word, time.monotonic() + self.rng.uniform(0.05, 0.8)))

    def open_file(self, path: Path) -> None:
        """Open now, and write into what was opened later, whatever has its name by then."""
        held = os.open(path, os.O_RDWR)
        word = self._word()
        text = self._edited(path, os.pread(held, 1 << 24, 0), word)
        self.buffers.append(Buffer(path, text, word, time.monotonic() + self.rng.uniform(0.05, 0.8), held))

    def _save_late(self, buffer: Buffer) -> None:
        if buffer.held is None:
            self.rng.choice((self._replace, Path.write_bytes))(buffer.path, buffer.text)
        else:
            os.pwrite(buffer.held, buffer.text, 0)
            os.ftruncate(buffer.held, len(buffer.text))
            os.close(buffer.held)
        self.words[buffer.path].append(buffer.word)

    def git(self, *args: str) -> bool:
        """Call git; return whether it did what it was told (kbd may have written in between)."""
        return subprocess.run([*GIT, *args], cwd=self.folder, env=_ENV, capture_output=True).returncode == 0

    def checkout(self, path: Path) -> None:
        """Look at an old state of a file, and come back."""
        self.renamed(path)
        if self.git("commit", "-qam", "work") and self.git("checkout", "-q", "HEAD~1", "--", path.name):
            time.sleep(self.rng.uniform(0, 0.2))
            assert self.git("checkout", "-q", "HEAD", "--", path.name), "the person cannot come back"

    def merge(self, path: Path) -> None:
        self._with_branch(path, lambda: self.git("merge", "-q", "side") or not self.git("merge", "--abort"))

    def rebase(self, path: Path) -> None:
        self._with_branch(
            path,
            lambda: (
                self.git("rebase", "-q", "main", "side")
                and self._switch("main")
                and self.git("merge", "-q", "--ff-only", "side")
            ),
        )

    def _with_branch(self, path: Path, bring_back: Callable[[], bool]) -> None:
        """Commit one line on a branch and one on main, and bring them together; what fails stays on the branch."""
        self.git("commit", "-qam", "before")
        if not self.git("checkout", "-q", "-B", "side"):
            return
        self.renamed(path)
        aside = self.words[path].pop()
        committed = self.git("commit", "-qm", "aside", "--", path.name)
        if not self._switch("main") or not committed:
            return
        other = self.rng.choice([p for p in self.words if p != path])
        self.renamed(other)
        self.git("commit", "-qam", "on main")
        bring_back()
        for unfinished in ("rebase", "merge"):
            self.git(unfinished, "--abort")
        self._switch("main")
        if aside.encode() in path.read_bytes():
            self.words[path].append(aside)

    def _switch(self, branch: str) -> bool:
        """Go to a branch; what kbd wrote meanwhile is nothing the person must keep."""
        return any(self.git("checkout", "-q", *force, branch) for force in ((), (), ("-f",), ("-f",)))
