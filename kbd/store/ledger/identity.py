"""Which message a message is: its content identity, whatever file it is read from.

An id that the agent gives tells it everywhere. Without one session and time belong to it, and a copy in another session
is recognised by how sessions begin (see kinship.py), for which all that a file says is noted before it is stored.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from kbd.core.copies import Saying
from kbd.core.model import Message
from kbd.core.normal import normalise
from kbd.errors import FileUnreadable
from kbd.store import tail
from kbd.store.ledger import facts
from kbd.store.ledger.beginnings import forget_beginnings, note_beginning
from kbd.store.ledger.enclosing import Enclosing
from kbd.store.ledger.kinship import WORDS_BYTES, Kin, Kinship, microseconds, note_lineage
from kbd.store.ledger.tellings import Tellings, forget_places
from kbd.store.ledger.transcripts import file_row
from kbd.store.ledger.trunks import Trunks

PLACE_BITS = 16
"""A record may hold a whole conversation: so many bits of a place number its messages."""
MAX_OFFSET = (1 << 62 - PLACE_BITS) - 1


class Identity:
    """Identities of the messages in one batch of one file, within its transaction."""

    def __init__(self, db: sqlite3.Connection, agent: str, file: int, path: str) -> None:
        """Take the agent, whose name is part of every key, and the file: its id, and where it is now."""
        self._db, self._agent, self._file, self._path = db, agent, file, path
        self._tellings = Tellings(db)
        self._kinship = Kinship(db, self._tellings)
        self._enclosing = Enclosing(db, agent, self._kinship)
        self._twins: dict[str, tuple[str, ...]] = {}
        self._in_record: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._trunks = Trunks(db)

    def in_trunks(self, messages: Sequence[Message], is_read: Callable[[Message], bool]) -> list[Message]:
        """Return those messages that may be read, each for the session it counts for; to be asked before `note`."""
        return self._trunks.settle(messages, is_read)

    def note(self, closed: Iterable[Message], still_open: Iterable[Message], *, again: bool) -> set[int]:
        """Take what the file says next, as far as it is told by its words; return the entries to count again.

        `still_open` are messages that may still grow. `again` tells that a known file is read from its start.
        """
        if again:
            forget_beginnings(self._db, self._file)
            forget_places(self._db, self._file)
        told = [message for message in closed if self._is_told_by_words(message)]
        by_thread: dict[tuple[str, str], list[Saying]] = {}
        origins: dict[tuple[str, str], dict[str, None]] = {}
        for message in chain(told, (one for one in still_open if self._is_told_by_words(one))):
            note_lineage(self._db, message.session, message.copied_from)
            thread = (message.session, message.thread)
            by_thread.setdefault(thread, []).append(self._saying(message))
            origins.setdefault(thread, {}).update(dict.fromkeys(message.copied_from))
        for (session, own), sayings in by_thread.items():
            self._tellings.note(self._file, session, own, sayings, origins[session, own])
        return self._note_beginnings(told) | self._trunks.moved

    def of(self, message: Message) -> tuple[bytes, bytes | None]:
        """Return the key of a message, and the digest of its words if copies are told by them."""
        note_lineage(self._db, message.session, message.copied_from)
        if message.native_id and not message.renumbered:
            key = facts.key_of(self._agent, "m", message.native_id)
            return self._enclosing.key_of(key, message) if message.words else key, None
        text = normalise(_words(message))
        if not self._is_told_by_words(message):
            # Ids of calls are not unique everywhere (`call_1`), so their words belong to the identity.
            return facts.key_of(self._agent, "b", message.blocks[0].native_id or "", text), None
        when = message.at.isoformat() if message.at else f"{message.record_id or message.offset}"
        own = ("m", message.native_id) if message.native_id else ("f", self._trunks.declared(message), when, text)
        kin = Kin(
            facts.key_of(self._agent, "w", text),
            self._file,
            message.session,
            message.thread,
            _own_time(message),
            self.place(message),
            self._twins.get(message.thread, ()),
        )
        return self._kinship.canonical_key(facts.key_of(self._agent, *own), kin), kin.content

    def settle(self) -> set[int]:
        """Make one of messages that are known to be one now that they are stored; return the entries to count again."""
        return self._enclosing.settle()

    def kept(self, message: int) -> int:
        """Return which message a stored one is now, as copies were found to be one."""
        return self._kinship.kept(message)

    def stored(self, native_id: str) -> int | None:
        """Return the stored message with an id of its own, None if it names and wrote nothing."""
        key = facts.key_of(self._agent, "m", native_id)
        alias = self._db.execute("SELECT canonical FROM aliases WHERE key=?", (key,)).fetchone()
        return facts.message_id(self._db, key if alias is None else bytes(alias[0]))

    def _is_told_by_words(self, message: Message) -> bool:
        if message.native_id:
            return message.renumbered
        is_call = len(message.blocks) == 1 and message.blocks[0].native_id
        return not message.lines and not is_call

    def place(self, message: Message) -> int:
        """Return where a message of this batch stands: its record's offset and its number in the record."""
        return self._places.get(id(message), _first_place(message.offset))

    def _saying(self, message: Message) -> Saying:
        nth = self._in_record[message.offset] = self._in_record.get(message.offset, -1) + 1
        place = self._places[id(message)] = _first_place(message.offset) + min(nth, (1 << PLACE_BITS) - 1)
        words = facts.key_of(self._agent, "w", normalise(_words(message)))[:WORDS_BYTES]
        return Saying(words, _own_time(message), place)

    def _note_beginnings(self, told: Sequence[Message]) -> set[int]:
        """Note how threads begin; what they said before it showed whose copy they are is settled now."""
        threads: dict[str, list[Message]] = {}
        for message in told:
            threads.setdefault(message.thread, []).append(message)
        dirty: set[int] = set()
        for thread, messages in threads.items():
            said = ((m.session, f"{_own_time(m)} {normalise(_words(m))}") for m in messages)
            begun = note_beginning(self._db, self._file, thread, said, self._continues)
            self._twins[thread] = begun.twins
            if begun.is_told_now and begun.twins:
                dirty |= self._kinship.settle(self._file, thread, begun.twins)
        return dirty

    def _continues(self, other: int) -> bool:
        """Tell whether another transcript is gone and this one begins with all that was read of it."""
        known = file_row(self._db, other)
        position = known.position
        if position is None or position.cursor or os.path.lexists(known.path):
            return False
        try:
            return tail.holds(self._path, position)
        except (FileNotFoundError, FileUnreadable):  # reading it says what is wrong
            return False


def _first_place(offset: int) -> int:
    return max(min(offset, MAX_OFFSET), -MAX_OFFSET) << PLACE_BITS  # row numbers may be anything


def _own_time(message: Message) -> int | None:
    """Return the time that the record of a message carries, in microseconds."""
    return None if message.at is None or message.is_time_lent else microseconds(message.at)


def _words(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks)
