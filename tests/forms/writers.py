"""All writers by name; each knows its agent, its forms, and where the day of its messages comes from."""

from __future__ import annotations

import random
from typing import Protocol

from tests.forms import databases, documents, eventlines, lines, logs
from tests.forms.disk import Track
from tests.forms.history import History


class Writer(Protocol):
    agent: str
    times: str
    forms: tuple[str, ...]
    kinds: tuple[str, ...]
    deep: bool

    def tracks(self, history: History, forms: lines.Forms, rng: random.Random) -> list[Track]: ...


WRITERS: dict[str, type[Writer]] = {
    "claude-code": lines.Claude,
    "codex": lines.Codex,
    "gemini-cli": lines.Gemini,
    "gemini-cli before 0.40": documents.GeminiOld,
    "openclaw": lines.OpenClaw,
    "pi": lines.Pi,
    "qwen-code": eventlines.Qwen,
    "copilot-cli": eventlines.Copilot,
    "cursor": eventlines.Cursor,
    "cursor without tags": eventlines.CursorUntold,
    "kimi": eventlines.Kimi,
    "opencode": databases.OpenCode,
    "goose": databases.Goose,
    "hermes": databases.Hermes,
    "cline": documents.Cline,
    "cline extension": documents.ClineTask,
    "cline before tools": documents.ClineOld,
    "roo": documents.Roo,
    "continue": documents.Continue,
    "aider": logs.Aider,
    "chat-jsonl": eventlines.Chat,
    "chat-jsonl without times": eventlines.ChatUntold,
    "otel-genai": eventlines.Otel,
    "text": logs.Text,
    "text without times": logs.TextUntold,
}
