"""Entries cited by file and line number, as Codex's memory citations do."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection

from kbd.core.cite import Mention, Reading, digest
from kbd.core.model import Author, Block, LineCite
from kbd.core.normal import normalise
from kbd.core.reading import CitingBlock


def read_line_cite(
    db: sqlite3.Connection, cite: LineCite, cwd: str | None, bases: Collection[int]
) -> CitingBlock | None:
    """Return the citation of the entries that stand on the lines of a knowledge file, None if there are none.

    Lines are those of the file as last synced. A relative path is tried against the working directory, then against
    the folders of the known files.
    """
    path = _known_path(db, cite.path, cwd)
    if path is None:
        return None
    rows = db.execute(
        "SELECT e.id, e.base, p.id FROM entries e "
        "JOIN patterns p ON p.entry=e.id AND p.kind='title' AND p.until IS NULL "
        "WHERE e.file=? AND e.gone_on IS NULL AND e.line<=? AND max(e.last_line, e.line)>=?",
        (path, cite.end, cite.start),
    ).fetchall()
    text = f"{cite.path}:{cite.start}-{cite.end}"
    norm = normalise(text)
    mentions = tuple(
        Mention(pattern, entry, base, 0, len(text), 0, len(norm), digest(norm)[:8])
        for entry, base, pattern in rows
        if base in bases
    )
    if not mentions:
        return None
    return CitingBlock(Block(Author.AGENT_TEXT, text), text, Reading(len(norm), digest(norm), len(norm), mentions))


def _known_path(db: sqlite3.Connection, path: str, cwd: str | None) -> str | None:
    known = {str(r[0]): str(r[0]) for r in db.execute("SELECT path FROM notes")}
    known |= {os.path.realpath(p): p for p in known}
    if os.path.isabs(path):
        tried = [os.path.normpath(path)]
    else:
        tried = [os.path.normpath(os.path.join(cwd, path))] if cwd else []
    tried += [os.path.normpath(os.path.join(os.path.dirname(p), path)) for p in sorted(known)]
    return next((known[t] for t in tried if t in known), None)
