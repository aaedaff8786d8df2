"""What must hold of a decoder whatever it is fed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC
from functools import cached_property

from kbd.core.cite import Known, MatchPolicy
from kbd.core.match import PatternKind
from kbd.core.model import Decoded, Message, Record, ToolCall
from kbd.core.normal import normalise
from kbd.core.reading import Reader
from kbd.core.redact import redact, redact_lines
from kbd.core.relate import paths_in_prose
from kbd.sources.contract import FileKind
from kbd.sources.registry import formats
from tests.forms.history import TITLES, TODAY
from tests.fuzz.corpus import Seed, seeds

CPU_SECONDS = 5.0
"""No seed is longer than 100 KB or so, and reading one takes milliseconds: what needs seconds is not linear."""
STATE_BYTES = 256 << 10


class Broken(AssertionError):
    """A decoder did not keep a promise."""


class Target:
    """One format under test."""

    def __init__(self, agent: str) -> None:
        self.agent, self.format = agent, formats()[agent]

    @cached_property
    def _fallback(self) -> str:
        return seeds(self.agent)[0].relpath

    @cached_property
    def _reader(self) -> Reader:
        rows = [(i, normalise(t), PatternKind.TITLE, Known(i, 1, "because of case")) for i, t in enumerate(TITLES)]
        ids = [(100, "KD07", PatternKind.IDENT, Known(1, 1, "because of case"))]
        return Reader.of([*rows, *ids], {1: len(TITLES)}, MatchPolicy(count_thinking=True))

    def run(self, seed: Seed) -> int:
        """Read a seed in every way there is; return the number of citing blocks found.

        Raises:
            Broken: two ways differ, or one took too long or too much to remember.
        """
        begun = time.process_time()
        relpath = seed.relpath if self.format.file_kind(seed.relpath) else self._fallback
        records = _records(seed.data)
        if self.format.file_kind(relpath) is FileKind.DOCUMENT:
            messages = [m for record in records for m in self._all(relpath, [record], None)[1]]
        else:
            messages = self._stream(relpath, records)
        citing = sum(self._read(message) for message in messages)
        spent = time.process_time() - begun
        if spent > CPU_SECONDS:
            raise Broken(f"took {spent:.1f} CPU seconds for {len(seed.data)} bytes")
        return citing

    def _stream(self, relpath: str, records: Sequence[Record]) -> list[Message]:
        kinds, whole = self._all(relpath, records, None)
        for cut in {len(records) // 2, len(records) // 3, len(records) - 1}:
            kinds_so, whole_so = self._all(relpath, records, cut)
            if (kinds, _kept(whole)) != (kinds_so, _kept(whole_so)):
                raise Broken(f"stopping before record {cut} of {len(records)} changes what is read")
        return whole

    def _all(self, relpath: str, records: Sequence[Record], cut: int | None) -> tuple[list[object], list[Message]]:
        """Read all; `cut` is where reading stops, with a flush, and goes on from the state alone."""
        decoder = self.format.decoder(relpath, None)
        kinds: list[object] = []
        messages: list[Message] = []

        def take(decoded: Decoded) -> None:
            kinds.append((decoded.kinds, decoded.newest))
            messages.extend(decoded.messages)

        for i, record in enumerate(records):
            if i == cut:
                decoder.flush()
                decoder = self.format.decoder(relpath, self._state(decoder.state), tz=UTC)
            take(decoder.feed(record, TODAY))
        take(decoder.flush())
        self._state(decoder.state)
        return kinds, messages

    def _state(self, state: Callable[[], bytes]) -> bytes:
        data = state()
        if len(data) > STATE_BYTES:
            raise Broken(f"its state has {len(data)} bytes")
        return data

    def _read(self, message: Message) -> int:
        if not message.blocks:
            raise Broken("a message without blocks")
        said = self._reader.read(message, {1}, _names_knowledge)
        for citing in said.citing:
            paths_in_prose(citing.text)
            redact(citing.text)
            for mention in citing.reading.mentions:
                if not 0 <= mention.start < mention.end <= len(citing.text):
                    raise Broken(f"a mention at {mention.start}..{mention.end} of {len(citing.text)} characters")
        return len(said.citing)


def _kept(messages: Sequence[Message]) -> list[Message]:
    """Return messages as they are kept: what was said before a stop comes back with its secrets masked."""
    return [
        replace(m, blocks=tuple(replace(b, text="\n".join(redact_lines(b.text.split("\n")))) for b in m.blocks))
        for m in messages
    ]


def _names_knowledge(call: ToolCall) -> bool:
    return any("kb.md" in touch.path for touch in call.touched)


def _records(data: bytes) -> list[Record]:
    records: list[Record] = []
    offset = 0
    for line in data.split(b"\n"):
        records.append(Record(offset, line))
        offset += len(line) + 1
    return records
