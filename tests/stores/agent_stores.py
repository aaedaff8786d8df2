"""Builds the databases that agents keep, row by row."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

OPENCODE = """
CREATE TABLE session(id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text,
  time_created integer, time_updated integer);
CREATE TABLE message(id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part(id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer,
  data text);
"""
GOOSE = """
CREATE TABLE sessions(id text PRIMARY KEY, working_dir text, session_type text);
CREATE TABLE messages(id integer PRIMARY KEY AUTOINCREMENT, session_id text, role text, content_json text,
  created_timestamp integer, timestamp text DEFAULT CURRENT_TIMESTAMP, metadata_json text);
"""
HERMES = """
CREATE TABLE sessions(id text PRIMARY KEY, source text, parent_session_id text, cwd text);
CREATE TABLE messages(id integer PRIMARY KEY AUTOINCREMENT, session_id text NOT NULL, role text NOT NULL, content text,
  tool_call_id text, tool_calls text, tool_name text, timestamp real NOT NULL, reasoning text, reasoning_content text);
"""

Json = dict[str, object]


def millis(when: str) -> int:
    return int(datetime.fromisoformat(when + "+00:00").timestamp() * 1000)


def text(words: str, **more: object) -> Json:
    return {"type": "text", "text": words, **more}


def tool(name: str, given: Json, call: str = "c1", output: str = "") -> Json:
    return {
        "type": "tool",
        "tool": name,
        "callID": call,
        "state": {"status": "completed", "input": given, "output": output},
    }


class Store:
    """A database with one schema; small pages, as cases are kept under version control."""

    schema = ""

    def __init__(self, path: Path, *, wal: bool = False) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        self.db = sqlite3.connect(path)
        if is_new:
            self.db.executescript("PRAGMA page_size=512;" + ("PRAGMA journal_mode=wal;" if wal else "") + self.schema)

    def run(self, sql: str, *values: object) -> None:
        self.db.execute(sql, values)
        self.db.commit()

    def insert(self, table: str, **columns: object) -> None:
        marks = ",".join("?" * len(columns))
        self.run(f"INSERT INTO {table}({','.join(columns)}) VALUES ({marks})", *columns.values())

    def close(self) -> None:
        self.db.close()


class OpenCodeStore(Store):
    schema = OPENCODE

    def session(self, name: str, when: str, parent: str | None = None, title: str = "t") -> None:
        at = millis(when)
        self.insert(
            "session", id=name, parent_id=parent, directory="/w/app", title=title, time_created=at, time_updated=at
        )

    def message(
        self, name: str, session: str, when: str, *parts: Json, role: str = "assistant", **more: object
    ) -> None:
        at = millis(when)
        data = json.dumps({"role": role, "time": {"created": at}, "path": {"cwd": "/w/app"}, **more})
        self.insert("message", id=name, session_id=session, time_created=at, time_updated=at, data=data)
        for index, part in enumerate(parts):
            self.part(f"{name}_p{index}", name, session, at, part)

    def part(self, name: str, message: str, session: str, at: int, part: Json) -> None:
        data = json.dumps(part, ensure_ascii=False)
        self.insert(
            "part", id=name, message_id=message, session_id=session, time_created=at, time_updated=at, data=data
        )

    def grow(self, name: str, when: str, part: Json) -> None:
        self.run("UPDATE part SET data=?, time_updated=? WHERE id=?", json.dumps(part), millis(when), name)


class GooseStore(Store):
    schema = GOOSE

    def session(self, name: str, kind: str = "user") -> None:
        self.insert("sessions", id=name, working_dir="/w/app", session_type=kind)

    def message(self, session: str, when: str, *content: Json, role: str = "assistant", **shown: bool) -> None:
        at, body = millis(when) // 1000, json.dumps(content)
        self.insert(
            "messages",
            session_id=session,
            role=role,
            content_json=body,
            created_timestamp=at,
            metadata_json=json.dumps(shown),
        )

    def rewrite(self, session: str) -> None:
        """Delete and insert again, as `replace_conversation` does."""
        columns = "session_id, role, content_json, created_timestamp, metadata_json"
        rows = self.db.execute(f"SELECT {columns} FROM messages WHERE session_id=? ORDER BY id", (session,)).fetchall()
        self.db.execute("DELETE FROM messages WHERE session_id=?", (session,))
        self.db.executemany(f"INSERT INTO messages({columns}) VALUES (?,?,?,?,?)", rows)
        self.db.commit()


def request(name: str, given: Json, call: str = "call_1") -> Json:
    return {
        "type": "toolRequest",
        "id": call,
        "toolCall": {"status": "success", "value": {"name": name, "arguments": given}},
    }


class HermesStore(Store):
    schema = HERMES

    def session(self, name: str, parent: str | None = None) -> None:
        self.insert("sessions", id=name, source="cli", parent_session_id=parent, cwd="/w/app")

    def message(
        self, session: str, when: str, content: str, role: str = "assistant", calls: Sequence[Json] = ()
    ) -> None:
        given = json.dumps(calls) if calls else None
        self.insert(
            "messages", session_id=session, role=role, content=content, tool_calls=given, timestamp=millis(when) / 1000
        )


def call(name: str, given: Json) -> Json:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


def old_part(root: Path, session: str, message: str, name: str, when: str, part: Json, **more: object) -> None:
    """Lay a part, its message and its session as OpenCode did before it had a database."""
    documents = {
        f"session/p/{session}.json": {"id": session, "projectID": "p", "directory": "/w/app", **more},
        f"message/{session}/{message}.json": {
            "id": message,
            "sessionID": session,
            "role": "assistant",
            "time": {"created": millis(when)},
            "path": {"cwd": "/w/app"},
        },
        f"part/{message}/{name}.json": {"id": name, "messageID": message, "sessionID": session, **part},
    }
    for relpath, document in documents.items():
        path = root / "storage" / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))


def wal_and_database(source: Path, folder: Path) -> None:
    """Copy a store as a writer that died left it: rows in `-wal`, no `-shm`."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal"):
        (folder / (source.name + suffix)).write_bytes(Path(f"{source}{suffix}").read_bytes())


def compact(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")
