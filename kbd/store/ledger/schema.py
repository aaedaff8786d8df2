"""The ledger's tables; how an older ledger gets them is told in migrations.py.

Every number kbd shows is a function of these facts: messages with their holders, the mentions in their
blocks, who wrote which entry when, and what a person's file said when kbd first saw it. Days are ISO
strings (UTC), times ISO strings with microseconds and offset (UTC), so that they sort as text.
"""

from __future__ import annotations

SCHEMA_VERSION = 3

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE bases (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  first_read TEXT,                      -- day of the first complete reading
  decay_after TEXT,                     -- no decay pass on or before this day
  last_decay TEXT,                      -- day of the last decay pass
  limited INTEGER NOT NULL DEFAULT 0    -- it earns from sessions in its projects only
);

CREATE TABLE notes (                    -- knowledge files as last synced
  path TEXT PRIMARY KEY, base INTEGER NOT NULL REFERENCES bases(id), archive INTEGER NOT NULL,
  sha TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ino INTEGER NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0,
  problems TEXT NOT NULL DEFAULT '[]',
  wrote_at REAL, wrote_mtime_ns INTEGER -- real clock of kbd's last write, and the file's time after it
) WITHOUT ROWID;

CREATE TABLE entries (
  id INTEGER PRIMARY KEY, base INTEGER NOT NULL REFERENCES bases(id),
  title TEXT NOT NULL, norm TEXT NOT NULL, section TEXT NOT NULL, handle TEXT NOT NULL,
  type TEXT NOT NULL, type_source TEXT NOT NULL,
  file TEXT NOT NULL, line INTEGER NOT NULL, last_line INTEGER NOT NULL DEFAULT 0,
  place INTEGER NOT NULL, body TEXT NOT NULL DEFAULT '',
  body_sha TEXT NOT NULL DEFAULT '', ident TEXT,
  state TEXT NOT NULL, created TEXT, first_seen TEXT NOT NULL,
  base_ref INTEGER NOT NULL DEFAULT 0, covers TEXT, adjust INTEGER NOT NULL DEFAULT 0, last_floor TEXT,
  wrote_ref INTEGER, wrote_last TEXT, wrote_state TEXT, wrote_marker INTEGER,       -- confirmed in the file
  due_ref INTEGER, due_last TEXT, due_state TEXT, due_marker INTEGER,         -- intended, not confirmed
  file_ref INTEGER, file_last TEXT, file_state TEXT, file_marker INTEGER NOT NULL DEFAULT 0,
  bad_date INTEGER NOT NULL DEFAULT 0,
  dormant_since TEXT, archived_since TEXT, active_since TEXT, pinned INTEGER NOT NULL DEFAULT 0,
  fall_refs INTEGER NOT NULL DEFAULT 0,   -- references counted when it last left the active state
  moving TEXT,                            -- 'archive' or 'restore': the block is on its way to the other file
  gone_on TEXT, unmatchable INTEGER NOT NULL DEFAULT 0,
  ref INTEGER NOT NULL DEFAULT 0, last TEXT,                  -- as counted; see counts.py
  citations INTEGER NOT NULL DEFAULT 0, sessions INTEGER NOT NULL DEFAULT 0, listed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX entries_base ON entries(base, norm);
CREATE INDEX entries_file ON entries(file);
CREATE INDEX entries_handle ON entries(handle);

CREATE TABLE patterns (                 -- what cites an entry: title, id, handle, and aliases with an end
  id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entries(id),
  kind TEXT NOT NULL, text TEXT NOT NULL,
  earns_from TEXT,                      -- NULL: from all history
  until TEXT,                           -- NULL: for ever
  UNIQUE (entry, kind, text)
);

CREATE TABLE pairs (                    -- every (ref, last) kbd wrote or took in
  entry INTEGER NOT NULL, ref INTEGER NOT NULL, last TEXT NOT NULL,
  PRIMARY KEY (entry, ref, last)
) WITHOUT ROWID;

CREATE TABLE bodies (                   -- when which wording of an entry was first seen, and how its own text began
  entry INTEGER NOT NULL, sha TEXT NOT NULL, day TEXT NOT NULL, opening TEXT NOT NULL, PRIMARY KEY (entry, sha)
) WITHOUT ROWID;

CREATE TABLE sources (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, root TEXT NOT NULL, agent TEXT NOT NULL,
  last_record_at TEXT, health TEXT NOT NULL DEFAULT 'ok', detail TEXT NOT NULL DEFAULT ''
);

CREATE TABLE files (                    -- transcripts and how far they were read
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources(id),
  path TEXT NOT NULL, relpath TEXT NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL,
  birth_ns INTEGER, gone INTEGER NOT NULL DEFAULT 0,
  position TEXT, state BLOB, stream TEXT NOT NULL,
  session TEXT NOT NULL DEFAULT '', origins TEXT NOT NULL DEFAULT '[]',   -- text logs: whose lines these are
  size INTEGER NOT NULL DEFAULT 0, offset INTEGER NOT NULL DEFAULT 0, high INTEGER NOT NULL DEFAULT 0,
  settled INTEGER NOT NULL DEFAULT 0, reread INTEGER NOT NULL DEFAULT 0,
  mtime_ns INTEGER NOT NULL DEFAULT 0,
  records INTEGER NOT NULL DEFAULT 0, messages INTEGER NOT NULL DEFAULT 0,
  unknown INTEGER NOT NULL DEFAULT 0, malformed INTEGER NOT NULL DEFAULT 0, oversize INTEGER NOT NULL DEFAULT 0,
  -- text logs: what a rotated copy is recognised by
  head INTEGER, old_origins TEXT NOT NULL DEFAULT '[]', old_position TEXT,
  silence TEXT NOT NULL DEFAULT '{}',   -- how much of its newest messages names nothing (kbd.core.silence)
  last_record_at TEXT, read_at TEXT     -- when it was last read, whatever the times of its records
);
CREATE INDEX files_ino ON files(source, dev, ino);
CREATE INDEX files_path ON files(source, path);
CREATE INDEX files_relpath ON files(source, relpath) WHERE session!='';
CREATE INDEX files_session ON files(source, session) WHERE session!='';

CREATE TABLE heads (                    -- text logs: digests of how they begin, or began before they shrank (`old`)
  digest INTEGER NOT NULL, file INTEGER NOT NULL, old INTEGER NOT NULL, PRIMARY KEY (digest, file)
) WITHOUT ROWID;
CREATE INDEX heads_file ON heads(file);

CREATE TABLE marks (                    -- when the bytes from an offset on were first read: the time of untimed lines
  stream TEXT NOT NULL, offset INTEGER NOT NULL, at TEXT NOT NULL, PRIMARY KEY (stream, offset)
) WITHOUT ROWID;

CREATE TABLE activity (source INTEGER NOT NULL, day TEXT NOT NULL, PRIMARY KEY (source, day)) WITHOUT ROWID;
CREATE TABLE base_activity (            -- days with a session in the projects of a limited base
  base INTEGER NOT NULL, source INTEGER NOT NULL, day TEXT NOT NULL, PRIMARY KEY (base, source, day)
) WITHOUT ROWID;
CREATE TABLE seen_sessions (
  source INTEGER NOT NULL, session TEXT NOT NULL, day TEXT NOT NULL, PRIMARY KEY (source, session)
) WITHOUT ROWID;

CREATE TABLE messages (                 -- messages that name or write an entry, credited to their earliest holder
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, source INTEGER NOT NULL,
  session TEXT NOT NULL, at TEXT NOT NULL, day TEXT NOT NULL, cwd TEXT,
  content BLOB                          -- digest of the words of a message without id, to know its copies by
);
CREATE INDEX messages_content ON messages(content) WHERE content IS NOT NULL;
CREATE TABLE aliases (key BLOB PRIMARY KEY, canonical BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE lineage (session TEXT NOT NULL, ancestor TEXT NOT NULL, PRIMARY KEY (session, ancestor)) WITHOUT ROWID;
CREATE INDEX lineage_ancestor ON lineage(ancestor);
CREATE TABLE trunks (                   -- sub-agents by their own ids, and the session each counts for
  thread TEXT PRIMARY KEY, trunk TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX trunks_trunk ON trunks(trunk);
CREATE TABLE beginnings (               -- the first messages of transcripts without message ids, to know copies by
  file INTEGER NOT NULL, thread TEXT NOT NULL, session TEXT NOT NULL, chain BLOB NOT NULL,
  PRIMARY KEY (file, thread)
) WITHOUT ROWID;
CREATE INDEX beginnings_chain ON beginnings(chain);
CREATE TABLE threads (                  -- sessions as files hold them, where messages carry no id
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, session TEXT NOT NULL, thread TEXT NOT NULL,
  UNIQUE (file, session, thread)
);
CREATE TABLE origins (thread INTEGER NOT NULL, origin TEXT NOT NULL, PRIMARY KEY (thread, origin)) WITHOUT ROWID;
CREATE TABLE sayings (                  -- all they say, citing or not: digests of words, at µs (-1: none)
  thread INTEGER NOT NULL, at INTEGER NOT NULL, place INTEGER NOT NULL, words BLOB NOT NULL,
  PRIMARY KEY (thread, at, place)
) WITHOUT ROWID;
CREATE INDEX messages_day ON messages(session, day);

CREATE TABLE holders (                  -- every place a message was found
  message INTEGER NOT NULL REFERENCES messages(id), session TEXT NOT NULL, file INTEGER NOT NULL,
  thread TEXT NOT NULL,                 -- the session's own id where a file holds several that count for one
  at TEXT NOT NULL,
  told TEXT NOT NULL,                   -- what its record says, though that be later than it was read
  observed INTEGER NOT NULL, birth_ns INTEGER NOT NULL, path TEXT NOT NULL, cwd TEXT,
  record TEXT NOT NULL, offset INTEGER NOT NULL,
  place INTEGER NOT NULL DEFAULT 0,     -- which of the sayings it is
  silent INTEGER NOT NULL DEFAULT 0,    -- normalised characters of its blocks that name nothing, as this file has them
  PRIMARY KEY (message, session, file, thread)  -- the first columns in order: else SQLite 3.40 finds NULLs in others
) WITHOUT ROWID;
CREATE INDEX holders_place ON holders(file, offset);

CREATE TABLE blocks (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, message INTEGER NOT NULL REFERENCES messages(id),
  author TEXT NOT NULL, norm_length INTEGER NOT NULL, length INTEGER NOT NULL,
  sha BLOB NOT NULL, superseded INTEGER NOT NULL DEFAULT 0,
  inherited INTEGER NOT NULL DEFAULT 0  -- stored by an older kbd, and not read again since
);
CREATE INDEX blocks_message ON blocks(message);
CREATE INDEX blocks_inherited ON blocks(message) WHERE inherited=1;

CREATE TABLE mentions (
  block INTEGER NOT NULL REFERENCES blocks(id), pattern INTEGER NOT NULL, entry INTEGER NOT NULL,
  listed INTEGER NOT NULL, own INTEGER NOT NULL, span INTEGER NOT NULL, prefix BLOB NOT NULL,
  snippet TEXT NOT NULL, files TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (block, pattern)
) WITHOUT ROWID;
CREATE INDEX mentions_entry ON mentions(entry);

CREATE TABLE refs (                     -- the references, as counted: made anew from the facts above
  entry INTEGER NOT NULL, session TEXT NOT NULL, day TEXT NOT NULL, added INTEGER NOT NULL,
  PRIMARY KEY (entry, session, day)
) WITHOUT ROWID;
CREATE INDEX refs_day ON refs(day);

CREATE TABLE purged (digest BLOB PRIMARY KEY) WITHOUT ROWID;     -- sessions and transcripts never read again

CREATE TABLE set_aside (                -- references that a person's undo took back: evidence, not counted
  entry INTEGER NOT NULL, session TEXT NOT NULL, day TEXT NOT NULL, PRIMARY KEY (entry, session, day)
) WITHOUT ROWID;

CREATE TABLE undo (                     -- writes that can be taken back; the files of one act share `act`
  id INTEGER PRIMARY KEY, act INTEGER NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL
);
CREATE INDEX undo_path ON undo(path);
CREATE INDEX undo_act ON undo(act);

CREATE TABLE undo_changes (             -- what such a write changed, as in kbd.core.undoing.Change
  undo INTEGER NOT NULL REFERENCES undo(id), entry INTEGER,
  place INTEGER NOT NULL, old BLOB NOT NULL, new BLOB NOT NULL, before BLOB NOT NULL, after BLOB NOT NULL,
  title TEXT NOT NULL, above TEXT, section TEXT NOT NULL
);
CREATE INDEX undo_changes_undo ON undo_changes(undo);
CREATE INDEX undo_changes_entry ON undo_changes(entry);

CREATE TABLE authorships (
  message INTEGER NOT NULL REFERENCES messages(id), entry INTEGER NOT NULL, PRIMARY KEY (message, entry)
) WITHOUT ROWID;
CREATE INDEX authorships_entry ON authorships(entry);

CREATE TABLE events (                   -- what happened to entries and files, for `kbd log`
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, day TEXT NOT NULL, kind TEXT NOT NULL,
  base INTEGER, entry INTEGER, title TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX events_entry ON events(entry);

CREATE TABLE relations (
  base INTEGER NOT NULL, s TEXT NOT NULL, p TEXT NOT NULL, o TEXT NOT NULL,
  c TEXT, u TEXT, e TEXT, dirty INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (base, s, p, o)
) WITHOUT ROWID;

CREATE TABLE faults (                   -- standing problems by place; gone when mended
  code TEXT NOT NULL, place TEXT NOT NULL, what TEXT NOT NULL, hint TEXT NOT NULL, PRIMARY KEY (code, place)
) WITHOUT ROWID;
"""
