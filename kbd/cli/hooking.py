"""`kbd hook`: the context as the JSON envelope that the hooks of Claude Code and Codex expect.

A hook never fails a session: whatever happens, it ends within the time limit with exit code 0, and without words when
there is nothing to say. (Exit code 2 would keep a user's prompt from being sent.)
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass

import click

from kbd.cli.session import Session
from kbd.core.redact import printable
from kbd.errors import KbdError, UsageError

LIMIT_SECONDS = 1.2
"""Of the 1.5 s a hook may take; the rest is for Python to start and end."""
MAX_CHARS = 9_500
"""Clients cut or set aside what is longer than 10,000 characters."""
SESSION_BUDGET, PROMPT_BUDGET = 2_000, 700
MAX_INPUT_BYTES = 8 << 20
EVENTS = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


@click.command(
    "hook",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("event", default="", metavar="session-start|prompt")
@click.pass_obj
def hook(session: Session, event: str) -> int:
    """Answer an agent's hook: at the start of a session what it should know, at a prompt what the prompt calls for.

    Reads the event as JSON from stdin. Never fails, never takes longer than 1.5 s.
    """
    deadline = Deadline(LIMIT_SECONDS - time.process_time())
    try:
        data = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT_BYTES)
        answer = _answer(session, event, data)
    except Exception as error:  # noqa: BLE001 - fails open: no fault of kbd may keep an agent from its work
        if os.environ.get("KBD_DEBUG"):
            traceback.print_exc()
        answer = ""
        name = "" if isinstance(error, KbdError) else f"{type(error).__name__}: "
        click.echo(printable(f"kbd: {name}{error}"), err=True)
    if deadline.is_met() and answer:
        sys.stdout.buffer.write(answer.encode("utf-8"))
        sys.stdout.buffer.flush()
    return 0


class Deadline:
    """Ends the process with exit code 0 when its time is up: also out of a read or a lock that does not return."""

    def __init__(self, seconds: float) -> None:
        """Start now."""
        self._decided = threading.Lock()
        self._timer = threading.Timer(max(seconds, 0.05), self._end)
        self._timer.daemon = True
        self._timer.start()

    def is_met(self) -> bool:
        """Stop the clock. What is written after that is written whole; when time is up, this does not return."""
        self._decided.acquire()
        self._timer.cancel()
        return True

    def _end(self) -> None:
        if self._decided.acquire(blocking=False):
            os._exit(0)


@dataclass(frozen=True, slots=True)
class _Given:
    """What the client says: of its input only what is needed, each "" if it is missing or of another kind."""

    cwd: str
    source: str
    prompt: str

    @staticmethod
    def of(data: bytes) -> _Given:
        said = json.loads(data) if data.strip() else {}
        fields = said if isinstance(said, Mapping) else {}
        texts = {name: value for name in ("cwd", "source", "prompt") if isinstance(value := fields.get(name), str)}
        return _Given(texts.get("cwd", ""), texts.get("source", ""), texts.get("prompt", ""))


def _answer(session: Session, event: str, data: bytes) -> str:
    from kbd.cli.context import gather, wanted_of  # noqa: PLC0415 - inside the time limit, and where it may fail
    from kbd.core.relate import paths_in_prose  # noqa: PLC0415 - see above
    from kbd.service.context import Request  # noqa: PLC0415 - see above

    name = EVENTS.get(event)
    if name is None:
        raise UsageError(f"no hook is named {event!r}", hint=f"known: {', '.join(EVENTS)}")
    given = _Given.of(data)
    # What a session was told is in its summary after a compaction; told again at each, it would fill the window.
    if given.source == "compact" or (event == "prompt" and not given.prompt.strip()):
        return ""
    cwd = given.cwd if os.path.isabs(given.cwd) else os.getcwd()
    files = paths_in_prose(given.prompt)
    wanted = wanted_of(session.config, files, (), None, given.prompt, cwd)
    is_prompt = event == "prompt"
    overhead = len(_envelope(name, ""))
    request = Request(
        wanted,
        PROMPT_BUDGET if is_prompt else SESSION_BUDGET,
        max_chars=MAX_CHARS - overhead,
        only_asked_for=is_prompt,
    )
    found = gather(session, request, cwd=cwd, tell=lambda _: None)
    return _envelope(name, found.text()) if found.chosen else ""


def _envelope(name: str, text: str) -> str:
    told = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    return json.dumps(told, ensure_ascii=False) + "\n"
