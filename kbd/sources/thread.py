"""What links the messages of one transcript: when each began, what was touched before it, how the last one ended."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kbd.core.model import Author, Block, Message, SessionId
from kbd.core.redact import redact
from kbd.core.seam import SEAM_CHARS
from kbd.sources.memory import FirstTime, FirstTimes, RecentFiles, SeenFile
from kbd.sources.messagefiles import MessageFiles, NamedFiles

_RANDOM_ID_CHARS = 16


class ThreadState(msgspec.Struct, array_like=True):
    """What a thread remembers, for a decoder's state."""

    first: list[FirstTime] = []
    files: list[SeenFile] = []
    said: tuple[str, str] = ("", "")
    named: list[NamedFiles] = []


class Thread:
    """Makes the messages of one transcript, in order."""

    def __init__(self, saved: ThreadState | None = None) -> None:
        """Begin with what `saved` returned."""
        saved = saved or ThreadState()
        self._first = FirstTimes(saved.first)
        self._files = RecentFiles(saved.files)
        self._said = saved.said
        self._named = MessageFiles(saved.named)

    def saved(self) -> ThreadState:
        """Return what the constructor takes."""
        said = (self._said[0], redact(self._said[1]))  # what is saved is kept
        return ThreadState(self._first.saved(), self._files.saved(), said, self._named.saved())

    def message(
        self,
        given_id: str | None,
        session: str,
        record_id: str,
        at: datetime | None,
        cwd: str | None,
        blocks: tuple[Block, ...],
        offset: int,
        *,
        copied_from: tuple[str, ...] = (),
        is_fragment: bool = False,
        is_named: bool = False,
        is_time_lent: bool = False,
    ) -> Message:
        """Return a message with its first time and the files touched before it; its own files are remembered.

        `given_id` is the agent's id of it. `is_fragment` says that the records of one id each bring a piece of its
        text, to be joined; `is_named` that the id is a name made of the session, which a copy of the file has not;
        `is_time_lent` as in `Message`.
        """
        began = self._first.of(given_id, at)
        native_id = _unique(given_id, session, began)
        is_text = blocks[0].author is Author.AGENT_TEXT  # nothing else goes on from a text
        goes_on = is_fragment and is_text and native_id is not None and native_id == self._said[0]
        made = Message(
            native_id,
            SessionId(session),
            record_id,
            began,
            cwd,
            blocks,
            offset,
            recent=self._files.before(at),
            copied_from=tuple(SessionId(origin) for origin in copied_from if origin != session),
            before=redact(self._said[1]) if goes_on else "",
            renumbered=is_named or native_id not in (None, given_id) and began is None,
            is_time_lent=is_time_lent,
            earlier=self._named.take(native_id, blocks, cwd),
        )
        last = blocks[-1]
        if is_fragment:
            self._said = (native_id or "", last.text[-SEAM_CHARS:] if last.author is Author.AGENT_TEXT else "")
        self._files.note(blocks, cwd, at)
        return made


def _unique(given: str | None, session: str, first: datetime | None) -> str | None:
    """Return an id that is unique over all sessions and the same in copies.

    A long one is random. A short one names a message together with its time, which copies keep.
    """
    if given is None or len(given) >= _RANDOM_ID_CHARS:
        return given
    return f"{session}:{given}" if first is None else f"{given}@{first.isoformat()}"
