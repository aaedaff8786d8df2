"""What one message says: which entries its blocks name, and which entries it wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kbd.core import entries as markdown
from kbd.core.cite import BEFORE_CHARS, Known, Lexicon, MatchPolicy, Reading, judge_lines, read_block
from kbd.core.drafting import trimmed
from kbd.core.lean import lean
from kbd.core.match import Matcher, Pattern, PatternKind
from kbd.core.model import BREAK, Author, Block, Message, ToolCall
from kbd.core.normal import normalise
from kbd.core.seam import read_seam, with_seam
from kbd.core.silence import SilentBlock
from kbd.core.wording import wording_digest

# Runs of white space are bounded: unbounded ones after one another take cubic time on a line of blanks.
_ENTRY_HEAD = re.compile(r"[-*+]\s{1,8}(?:[^\w\s]{1,3}\s{1,8})?(?:\[[^\[\]\n]{1,30}\]\s{0,8}){0,8}(?:\*\*)?\s{0,8}$")
_CUT_HEAD = re.compile(r"(?:\W{1,3}\s+)?(?:\[[^\[\]\n]{1,30}\]\s*)*(?:\*\*)?")
_BLOCK_END = re.compile(r"\n(?=[-*+]\s|#{1,6}\s)|\n[ \t]*\n(?=\S)")
_BLOCK_CHARS = 4096
"""So much of a written entry is compared with what stood there before; a line with many heads may be megabytes."""


@dataclass(frozen=True, slots=True)
class CitingBlock:
    """A block that names entries.

    Attributes:
        block: the block as decoded.
        text: its text.
        reading: what it names, of the bases that may earn from this message.
    """

    block: Block
    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Wrote:
    """An entry whose lines a message wrote into a knowledge file.

    Attributes:
        entry: its id.
        wording: digest of the entry as written, where the whole file was written and the old text is unknown;
            None where the message itself shows that the entry is new or changed.
    """

    entry: int
    wording: str | None


@lean(frozen=True, slots=True)
class Said:
    """What a message says.

    Attributes:
        citing: blocks that name entries.
        wrote: entries it wrote.
        silent: blocks that could name entries and name none.
    """

    citing: tuple[CitingBlock, ...]
    wrote: tuple[Wrote, ...]
    silent: tuple[SilentBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """All that reading a message needs: the patterns in use and the policy; immutable.

    Attributes:
        matcher: all bases' patterns.
        lexicon: the entries behind them.
        titles: pattern references by normalised title.
        live: number of live entries by base.
        policy: what counts.
    """

    matcher: Matcher
    lexicon: Lexicon
    titles: Mapping[str, tuple[int, ...]]
    live: Mapping[int, int]
    policy: MatchPolicy

    @staticmethod
    def of(
        patterns: Sequence[tuple[int, str, PatternKind, Known]], live: Mapping[int, int], policy: MatchPolicy
    ) -> Reader:
        """Build from (pattern id, text, kind, entry) rows."""
        merged: dict[tuple[PatternKind, str], list[int]] = {}
        for number, text, kind, _ in patterns:
            merged.setdefault((kind, text), []).append(number)
        matcher = Matcher([Pattern(text, kind, tuple(refs)) for (kind, text), refs in merged.items()])
        titles = {text: tuple(refs) for (kind, text), refs in merged.items() if kind is PatternKind.TITLE}
        return Reader(matcher, {number: known for number, _, _, known in patterns}, titles, live, policy)

    def read(self, message: Message, bases: Collection[int], is_knowledge: Callable[[ToolCall], bool]) -> Said:
        """Return what a message says.

        Args:
            message: as decoded.
            bases: ids of the bases that may earn from it.
            is_knowledge: tells whether a tool call names a knowledge file, an archive or a relations file.
        """
        citing: list[CitingBlock] = []
        wrote: list[Wrote] = []
        silent: list[SilentBlock] = []
        before = message.before
        for block in message.blocks:
            across, before = before, block.text if block.author is Author.AGENT_TEXT else ""
            call = block.call
            if call is not None and call.own:
                wrote.extend(self._added(call))
            if call is not None and is_knowledge(call):
                wrote.extend(() if call.own else self._written(call))
                continue
            if block.text and self._counts(block.author):
                reading = self._read(message, block.text, bases, across if before else "")
                if reading is not None and reading.mentions:
                    citing.append(CitingBlock(block, block.text, reading))
                else:
                    silent.append(SilentBlock(block.text, reading.norm_length - reading.length if reading else 0))
        return Said(tuple(citing), tuple(wrote), tuple(silent))

    def _counts(self, author: Author) -> bool:
        if author is Author.THINKING:
            return self.policy.count_thinking
        return author is Author.AGENT_TEXT or self.policy.count_tool_input

    def _read(self, message: Message, text: str, bases: Collection[int], before: str) -> Reading | None:
        reading = read_block(text, self.matcher, self.lexicon, self.policy.types)
        across = read_seam(before, text, self.matcher, self.lexicon) if before else ()
        if across:
            reading = with_seam(text, reading, across)
        if reading is None:
            return None
        reading = replace(reading, mentions=tuple(m for m in reading.mentions if m.base in bases))
        if message.lines and reading.mentions:
            reading = judge_lines(text, reading, message.lines, self.live, self.policy)
        return reading

    def _added(self, call: ToolCall) -> list[Wrote]:
        """Return the entries that a call of `kbd add`, or of the tool of that name, made: others it may name, too."""
        norms = [normalise(trimmed(title)) for title in call.added]
        return [Wrote(self.lexicon[ref].entry, None) for norm in norms for ref in self.titles.get(norm, ())]

    def _written(self, call: ToolCall) -> list[Wrote]:
        """Return the entries whose head stands in the new text of a call to a knowledge file."""
        if call.whole_file:
            return self._written_whole(call.written)
        before = set(self._heads(call.copied))
        changed = (pattern for pattern, block in self._heads(call.written) if (pattern, block) not in before)
        refs = (ref for index in changed for ref in self.matcher.patterns[index].refs)
        return [Wrote(self.lexicon[ref].entry, None) for ref in refs]

    def _heads(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the titles that head an entry in a piece of a knowledge file, each with its block from there on.

        The piece may begin within the first line of an entry: then only bold tells a head from prose.
        """
        for match in self.matcher.find(text):
            if self.matcher.patterns[match.pattern].kind is not PatternKind.TITLE:
                continue
            near = max(match.start - BEFORE_CHARS, 0)
            line = text[max(text.rfind("\n", near, match.start) + 1, near) : match.start]
            at = match.start - len(line)
            begins = (at == 0 or text.endswith(BREAK, 0, at)) and _CUT_HEAD.fullmatch(line)
            if _ENTRY_HEAD.search(line) or begins and (line.endswith("**") or text.startswith("**", match.end)):
                limit = match.end + _BLOCK_CHARS
                end = _BLOCK_END.search(text, match.end, limit)
                yield match.pattern, normalise(text[match.start : end.start() if end else limit])

    def _written_whole(self, text: str) -> list[Wrote]:
        parsed = markdown.parse(text.encode("utf-8", "surrogatepass"))
        found: list[Wrote] = []
        for entry in parsed.entries:
            if refs := self.titles.get(entry.norm):
                digest = wording_digest(entry)
                found.extend(Wrote(self.lexicon[ref].entry, digest) for ref in refs)
        return found
