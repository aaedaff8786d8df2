"""Storing what a message said: blocks, mentions, listings, authorship. Idempotent; the caller holds a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from kbd.core.cite import Mention, digest, first_per_pattern, is_listing
from kbd.core.normal import normalise
from kbd.core.reading import CitingBlock, Reader, Said, Wrote
from kbd.core.snippet import snippet
from kbd.store.ledger import facts
from kbd.store.ledger.facts import BlockFact, Holder, MentionFact
from kbd.store.ledger.inherited import claim


@dataclass(slots=True)
class _Touched:
    """A message that something was stored of: whether its text has changed, files to be named with all its mentions."""

    changed: bool = False
    files: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Crediting:
    """Stores what messages of one batch say.

    What concerns a message as a whole is done at the end: its records may be thousands.

    Attributes:
        db: within a transaction.
        source: id of the source; agent: its agent, part of every key.
        reader: the patterns in use.
        snippet_chars: length of the evidence.
    """

    db: sqlite3.Connection
    source: int
    agent: str
    reader: Reader
    snippet_chars: int
    touched: dict[int, _Touched] = field(default_factory=dict)

    def store(
        self, key: bytes, holder: Holder, said: Said, files: Sequence[str], *, silent: int, is_paragraph: bool
    ) -> set[int]:
        """Store a message; return the entries it no longer names.

        Args:
            key: content identity of the message.
            holder: where it was found.
            said: what it says.
            files: names of the files it is about.
            silent: normalised characters of its blocks that name nothing, if it is one record; see `measure`.
            is_paragraph: a paragraph of a log: one block, which may grow, with listings judged by line.
        """
        blocks = [
            self._fact(self._block_key(key, citing, is_paragraph=is_paragraph), citing, tuple(files))
            for citing in said.citing
        ]
        claim(self.db, key, holder, blocks)
        message = facts.hold_message(self.db, key, self.source, holder)
        lost: set[int] = set()
        changed = facts.hold_silence(self.db, message, holder.file, silent) if silent else False
        for citing, block in zip(said.citing, blocks, strict=True):
            if citing.block.native_id is None and not is_paragraph:
                changed |= self.supersede(message, citing.text)
            held = facts.hold_block(self.db, message, block, self.reader.lexicon)
            changed |= held.changed
            lost |= held.lost
        wrote = {w.entry for w in said.wrote if self._is_authorship(w, holder.at.date())}
        facts.hold_authorship(self.db, message, wrote)
        self._touch(message, changed=changed and not is_paragraph)
        return lost

    def _touch(self, message: int, files: Sequence[str] = (), *, changed: bool) -> None:
        one = self.touched.setdefault(message, _Touched())
        one.changed = one.changed or changed
        one.files.update(dict.fromkeys(files))

    def finish(self, kept: Callable[[int], int], files_limit: int) -> set[int]:
        """Do what concerns messages as a whole; return the entries whose numbers may have changed.

        `kept` tells which message one is that was stored of, as copies may have become one since.
        """
        dirty: set[int] = set()
        for stored, one in self.touched.items():
            message = kept(stored)
            if one.files:
                facts.add_files(self.db, message, tuple(one.files), files_limit)
            if one.changed:
                self._judge(message)
            dirty |= facts.entries_of_message(self.db, message)
        self.touched.clear()
        return dirty

    def _block_key(self, key: bytes, citing: CitingBlock, *, is_paragraph: bool) -> bytes:
        if citing.block.native_id is not None:
            return facts.key_of("b", key.hex(), citing.block.native_id)
        if is_paragraph:
            return facts.key_of("p", key.hex())
        return facts.key_of("t", key.hex(), citing.block.author.value, citing.reading.sha.hex())

    def supersede(self, message: int, text: str) -> bool:
        """Let streamed partials of this text no longer count; True if there were any."""
        known = facts.growing_blocks(self.db, message)
        norm = normalise(text) if known else ""
        partials = [b for b, length, sha in known if length < len(norm) and digest(norm[:length]) == sha]
        facts.supersede(self.db, partials)
        return bool(partials)

    def _fact(self, key: bytes, citing: CitingBlock, files: tuple[str, ...]) -> BlockFact:
        mentions = tuple(self._mention(m, citing.text, files) for m in first_per_pattern(citing.reading.mentions))
        reading = citing.reading
        return BlockFact(key, citing.block.author.value, reading.norm_length, reading.length, reading.sha, mentions)

    def _mention(self, mention: Mention, text: str, files: tuple[str, ...]) -> MentionFact:
        words = snippet(text, mention.start, mention.end, self.snippet_chars)
        return MentionFact(
            mention.pattern, mention.entry, mention.listed, mention.own, mention.span, mention.prefix, words, files
        )

    def _judge(self, message: int) -> None:
        """Judge listing over all blocks of a message, base by base."""
        mentions, length = facts.message_mentions(self.db, message)
        for base in {m.base for m in mentions}:
            part = [m for m in mentions if m.base == base]
            as_mentions = [Mention(m.pattern, m.entry, m.base, 0, 0, m.own, m.span, b"") for m in part]
            live = self.reader.live.get(base, 0)
            facts.set_listed(self.db, part, is_listing(as_mentions, length, live, self.reader.policy))

    def _is_authorship(self, wrote: Wrote, day: date) -> bool:
        """Tell whether an entry was new or changed when a message wrote the whole file.

        What is known of its earlier wording decides; of an entry that kbd first saw later, only its creation date
        can tell that it was new.
        """
        if wrote.wording is None:
            return True
        row = self.db.execute("SELECT created, first_seen FROM entries WHERE id=?", (wrote.entry,)).fetchone()
        if day.isoformat() == row["created"]:
            return True
        if day.isoformat() < row["first_seen"]:
            return False
        known = self.db.execute(
            "SELECT 1 FROM bodies WHERE entry=? AND sha=? AND day<?", (wrote.entry, wrote.wording, day.isoformat())
        ).fetchone()
        earlier = self.db.execute(
            "SELECT 1 FROM bodies WHERE entry=? AND day<?", (wrote.entry, day.isoformat())
        ).fetchone()
        return known is None and (earlier is not None or row["first_seen"] == day.isoformat())

    def continue_message(self, message: int, texts: Sequence[str], files: Sequence[str]) -> None:
        """Take a silent record of a stored message: it brings a file, or a partial's full text."""
        changed = any([self.supersede(message, text) for text in texts])
        if changed or files:
            self._touch(message, files, changed=changed)

    def measure(self, message: int, file: int, silent: int, before: int | None) -> None:
        """Take how many normalised characters of a message name nothing, as a file has it; a listing is judged anew.

        `before` is what it was said to be last; more than that, of records long before, stands. None: nothing stands.
        """
        if facts.hold_silence(self.db, message, file, silent, before):
            self._touch(message, changed=True)


def covered_time(db: sqlite3.Connection, at: datetime, entries: Sequence[int]) -> datetime:
    """Date an untimed line, read again after a restore, into the days that the files' numbers cover.

    It was read before the ledger was lost; dated anew it would count twice. Of several entries' days the earliest is
    covered for all.
    """
    named = tuple(set(entries))
    marks = ",".join("?" * len(named))
    row = db.execute(f"SELECT min(covers) FROM entries WHERE id IN ({marks})", named).fetchone()  # noqa: S608 - marks
    return min(at, datetime.fromisoformat(row[0]).replace(tzinfo=at.tzinfo)) if row[0] else at
