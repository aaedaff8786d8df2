"""The turns of generic chat records: OpenAI, Anthropic, Gemini, ShareGPT, Responses, and the CLIs' stream dialects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kbd.core.model import Author, Block
from kbd.core.toolinput import tool_call
from kbd.sources.jsonl import object_of, objects_of, parsed_arguments, text_of
from kbd.sources.memory import identifier

Turn = Mapping[str, object]

_AGENT_ROLES = frozenset(["assistant", "model", "gpt", "chatgpt", "bot", "ai"])
_TEXT_PARTS = frozenset(["text", "output_text", "Text", ""])
_CALL_PARTS = frozenset(["tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "toolCall", "function_call"])
_LONE_CALLS = ("function_call", "tool_use")
"""Calls that are records of their own: the Responses API's, those of Gemini's stream."""
_CODEX_ITEMS = frozenset(["agent_message", "command_execution", "reasoning", "mcp_tool_call"])


def is_agent(turn: Turn) -> bool:
    """Whether the agent wrote a turn, by `role`, `from` or the type of a Responses item."""
    role = text_of(turn, "role") or text_of(turn, "from")
    return role.lower() in _AGENT_ROLES or not role and text_of(turn, "type") in (*_LONE_CALLS, *_CODEX_ITEMS)


def turns_of(record: Turn) -> tuple[Turn, ...] | None:
    """Return the turns of one record, oldest first; None if it has no shape that is known."""
    for key in ("messages", "conversations", "conversation", "turns"):
        if isinstance(record.get(key), list):
            return (*objects_of(record, key), *_response(record))
    response = _response(record)
    if response:
        return response
    message = object_of(record, "message")
    kind = text_of(record, "type")
    if message and (kind in ("assistant", "user") or "role" in record):  # Claude's stream, Cursor's transcripts
        return ({"role": text_of(record, "role") or kind, **message},)
    if kind == "item.completed":
        return (object_of(record, "item"),)
    if "role" in record and ("content" in record or "parts" in record or "tool_calls" in record):
        return (record,)
    if ("from" in record and "value" in record) or kind in (*_LONE_CALLS, "function_call_output"):
        return (record,)
    return () if kind else None


def _response(record: Turn) -> tuple[Turn, ...]:
    """Return what a logged call of an API answered; what it was asked is history."""
    answer = object_of(record, "response") or record
    answer = object_of(answer, "body") or answer
    if answer is not record and "content" in answer:  # Anthropic answers with the message itself
        return ({"role": "assistant", **answer},)
    messages = tuple(object_of(choice, "message") for choice in objects_of(answer, "choices"))
    return tuple(message for message in messages if message) or tuple(objects_of(answer, "output"))


def delta_of(record: Turn) -> str | None:
    """Return the piece of text a stream record adds, None if it is no such record."""
    if record.get("delta") is True and is_agent(record):
        return text_of(record, "content")
    if text_of(record, "type") == "content_block_delta":
        return text_of(object_of(record, "delta"), "text")
    if text_of(record, "object") == "chat.completion.chunk":
        return "".join(text_of(object_of(choice, "delta"), "content") for choice in objects_of(record, "choices"))
    return None


def blocks_of(turn: Turn, native: bool) -> Iterator[Block]:
    """Yield the blocks of an agent's turn; adjacent parts of text are one stream. `native` keeps the ids of calls."""
    thought = text_of(turn, "reasoning_content")
    if thought.strip():
        yield Block(Author.THINKING, thought)
    text: list[str] = []
    for part in _parts(turn):
        if text_of(part, "type") in _TEXT_PARTS and part.get("thought") is not True and "functionCall" not in part:
            text.append(text_of(part, "text"))
            continue
        yield from _text(text)
        text = []
        yield from _part(part, native)
    yield from _text(text)
    calls = [*objects_of(turn, "tool_calls"), *([object_of(turn, "function_call")] if "function_call" in turn else [])]
    for call in calls:
        yield _call(object_of(call, "function") or call, call.get("id"), native)


def _parts(turn: Turn) -> Sequence[Turn]:
    for key in ("content", "parts", "value", "text"):
        value = turn.get(key)
        if isinstance(value, str):
            return ({"type": "reasoning" if turn.get("type") == "reasoning" else "text", "text": value},)
        if isinstance(value, list):
            parts = ({"type": "text", "text": part} if isinstance(part, str) else part for part in value)
            return [part for part in parts if isinstance(part, dict)]
    return (turn,) if text_of(turn, "type") in (*_LONE_CALLS, "command_execution", "mcp_tool_call") else ()


def _text(pieces: Sequence[str]) -> Iterator[Block]:
    text = "".join(pieces)
    if text.strip():
        yield Block(Author.AGENT_TEXT, text)


def _part(part: Turn, native: bool) -> Iterator[Block]:
    kind = text_of(part, "type")
    if isinstance(part.get("functionCall"), dict):
        yield _call(object_of(part, "functionCall"), None, native)
    elif kind in _CALL_PARTS:
        yield _call(part, part.get("id"), native)
    elif kind == "command_execution":
        yield _call({"name": "shell", "arguments": {"command": part.get("command")}}, None, native)
    elif kind == "mcp_tool_call":
        yield _call({"name": part.get("tool"), "arguments": part.get("arguments")}, None, native)
    elif kind in ("thinking", "reasoning") or part.get("thought") is True:
        thought = text_of(part, "thinking") or text_of(part, "text")
        if thought.strip():
            yield Block(Author.THINKING, thought)


def _call(call: Turn, call_id: object, native: bool) -> Block:
    arguments = next((call[key] for key in ("arguments", "input", "args", "parameters") if key in call), None)
    found = tool_call(text_of(call, "name") or text_of(call, "tool_name"), parsed_arguments(arguments))
    return Block(Author.AGENT_TOOL_INPUT, found.written, identifier(call_id) if native else None, found)
