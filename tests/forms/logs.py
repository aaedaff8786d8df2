"""What is written as plain text: logs in every form of rotation, and Aider's Markdown."""

from __future__ import annotations

import random
from datetime import UTC

from tests.forms.disk import Track, copy, pack, pieces, rename, truncate
from tests.forms.history import History, Part, Session, Turn
from tests.forms.lines import Forms


class Text:
    """A log a session; each line that begins a paragraph carries its time."""

    agent, times = "text", "record"
    forms: tuple[str, ...] = ("renamed", "copytruncate", "packed", "bracketed")
    kinds: tuple[str, ...] = ()
    deep = True

    def path(self, session: Session) -> str:
        return f"deep/{session.id}.log"

    def paragraph(self, turn: Turn, forms: Forms) -> str:
        text = "\n  ".join(part.text for part in turn.parts)
        stamp = f"[{turn.at:%Y-%m-%d %H:%M:%S}+00:00] " if "bracketed" in forms else f"{turn.at:%Y-%m-%dT%H:%M:%SZ} "
        return f"{stamp}{text}\n"

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        return [self.track(session, forms, rng) for session in history.sessions if session.own]

    def track(self, session: Session, forms: Forms, rng: random.Random) -> Track:
        """Write up to three generations, each rotated away before the next begins."""
        path, turns = self.path(session), list(session.own)
        ways = [form for form in ("renamed", "copytruncate") if form in forms]
        track: Track = []
        rotated = 0
        while turns:
            count = rng.randrange(1, len(turns) + 1) if ways and rotated < 2 else len(turns)
            now, turns = turns[:count], turns[count:]
            track += pieces(path, "".join(self.paragraph(turn, forms) for turn in now).encode(), rng)
            if turns:
                track += self.rotate(path, rng.choice(ways), rotated, forms)
                rotated += 1
        return track

    def rotate(self, path: str, way: str, rotated: int, forms: Forms) -> Track:
        suffix = ".gz" if "packed" in forms else ""
        older = [rename(f"{path}.{n}{suffix}", f"{path}.{n + 1}{suffix}") for n in range(rotated, 0, -1)]
        aside = [rename(path, f"{path}.1")] if way == "renamed" else [copy(path, f"{path}.1"), truncate(path)]
        return [*older, *aside, *([pack(f"{path}.1", f"{path}.1.gz")] if suffix else [])]


class TextUntold(Text):
    """Without times: paragraphs stand apart, the day is that of the reading."""

    times, forms = "observed", ("renamed", "copytruncate", "packed")

    def paragraph(self, turn: Turn, forms: Forms) -> str:
        return "\n  ".join(part.text for part in turn.parts) + "\n\n"


class Aider:
    """One history for all chats of a project, each begun with a header that alone has a time."""

    agent, times = "aider", "session"
    forms: tuple[str, ...] = ("injected", "moved", "one_project")
    kinds: tuple[str, ...] = ()
    deep = True

    def chat(self, session: Session, forms: Forms) -> str:
        started = session.began.astimezone(UTC)
        header = f"\n# aider chat started at {started:%Y-%m-%d %H:%M:%S}\n\n"
        return (
            header
            + "> Aider v0.86.1  \n> Added src/a.py to the chat.  \n\n"
            + "".join(self.reply(turn, forms) for turn in session.own)
        )

    def reply(self, turn: Turn, forms: Forms) -> str:
        noise = (
            "#### Backoff must be capped  \n#### Build cache  \n\n> C++ ABI break  \n" if "injected" in forms else ""
        )
        body = "\n\n".join(self.part(part) for part in turn.parts)
        return f"{noise}\n#### go on with {turn.number}  \n\n{body}\n\n> Tokens: 5.2k sent, 604 received.  \n"

    def part(self, part: Part) -> str:
        if not part.is_tool:
            return part.text
        return f"src/a.py\n```python\n<<<<<<< SEARCH\n# {part.copied}\n=======\n# {part.text}\n>>>>>>> REPLACE\n```"

    def tracks(self, history: History, forms: Forms, rng: random.Random) -> list[Track]:
        if "one_project" in forms:
            whole = "".join(self.chat(session, forms) for session in history.sessions)
            return [pieces("app/.aider.chat.history.md", whole.encode(), rng)]
        return [self.project(session, forms, rng) for session in history.sessions]

    def project(self, session: Session, forms: Forms, rng: random.Random) -> Track:
        """Write one project's history; its folder may be renamed once it is written."""
        place = f"app{session.number}/.aider.chat.history.md"
        track = pieces(place, self.chat(session, forms).encode(), rng)
        return track + ([rename(place, f"renamed-{place}")] if "moved" in forms else [])
