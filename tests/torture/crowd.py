"""A great many small transcripts, and a daemon that finds them: how long it takes, and in how much memory."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.world import World

FOLDER_FILES = 1000


def make_crowd(world: World, files: int, citing_every: int) -> None:
    """Write sessions of one record each, a thousand a folder, of which each `citing_every`-th cites a lesson."""
    lessons = [lesson for lesson in world.oracle.lessons.values() if lesson.present and len(lesson.title) > 8]
    stamp = f"{world.today}T08:00:00.000Z"
    for i in range(files):
        folder = world.root / "claude" / "projects" / f"-w-{i // FOLDER_FILES}"
        if i % FOLDER_FILES == 0:
            folder.mkdir(parents=True)
        words = "nothing to see"
        if i % citing_every == 0:
            lesson = lessons[i // citing_every % len(lessons)]
            words = f"as in {lesson.title}, so"
            world.oracle.cite(lesson, f"crowd {i}", f"c{i}", world.today)
        fd = os.open(folder / f"c{i}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, _record(i, stamp, words))
        os.close(fd)


def _record(i: int, stamp: str, words: str) -> bytes:
    head = f'"uuid":"00000000-0000-4000-8000-{i:012x}","timestamp":"{stamp}","cwd":"/w/app","sessionId":"c{i}"'
    message = f'"id":"msg_c{i}","role":"assistant","model":"m-1","content":[{{"type":"text","text":"{words}"}}]'
    return f'{{"parentUuid":null,{head},"type":"assistant","message":{{{message}}}}}\n'.encode()


def peak_mib(pid: int) -> float:
    """Return the most memory that a process ever held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")
