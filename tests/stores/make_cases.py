"""Lays the cases of agents that keep their transcripts in SQLite: `python tests/stores/make_cases.py` writes them anew.

The databases are kept as they come out, as SQLite's bytes differ from version to version.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import zstandard
from agent_stores import GooseStore, HermesStore, OpenCodeStore, Store, call, old_part, request, text, tool, wal_and_database

CASES = Path(__file__).parent.parent / "cases"
BACKOFF, RELEASE, UTC, FD = "Backoff must be capped", "Release: build, verify, tag, publish", "Store timestamps in UTC", "Lock fd leaked on exception path"
TITLES = (FD, BACKOFF, RELEASE, UTC)
KB = "# Lessons\n\n## All\n\n" + "".join(f"- [pitfall] **{title}** — why it matters (2026-05-19)\n" for title in TITLES)
ROOTS = {"opencode": "home/.local/share/opencode", "goose": "home/.local/share/goose/sessions", "hermes": "home/.hermes", "codex": "home/.codex"}
FILES = {"opencode": ("opencode.db", OpenCodeStore), "goose": ("sessions.db", GooseStore), "hermes": ("state.db", HermesStore)}
CAP, SHIP = f"Per {BACKOFF}, I cap it.", f"{RELEASE} is what I follow."
HARNESS = "Review the conversation above and update the skill library. Be thorough."

Expected = dict[str, int | dict[str, int]]


class Case:
    """A case being laid."""

    def __init__(self, agent: str, name: str, why: str) -> None:
        self.agent, self.folder, self.steps = agent, CASES / f"{agent}-{name}", 0
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "why.txt").write_text(why + "\n")
        (self.folder / "config.yaml").write_text(
            'bases:\n  - name: lessons\n    files: ["kb/*.md"]\n    relations: kb/.knowledge-graph.yaml\n'
            f"sources:\n  - {{agent: {agent}, root: {ROOTS[agent]}}}\n"
        )
        self.work = Path(tempfile.mkdtemp())

    @property
    def root(self) -> Path:
        return self.folder / str(self.steps) / "files" / ROOTS[self.agent]

    def step(self, lay: Callable[[], None] | None = None, now: str = "2026-06-30", ops: list[list[str]] | None = None, **refs: object) -> None:
        """Close a step: what `lay` put under `root`, and what must come out."""
        self.steps += 1
        here = self.folder / str(self.steps)
        here.mkdir()
        if self.steps == 1:
            (here / "files/kb").mkdir(parents=True)
            (here / "files/kb/lessons.md").write_text(KB)
        if lay is not None:
            self.root.mkdir(parents=True, exist_ok=True)
            lay()
        if ops:
            (here / "ops.json").write_text(json.dumps(ops) + "\n")
        given = {BACKOFF: refs.get("cap", 0), RELEASE: refs.get("ship", 0), UTC: refs.get("utc", 0), FD: refs.get("fd", 0)}
        expect = {title: value if isinstance(value, dict) else {"ref": value} for title, value in given.items()}
        (here / "step.json").write_text(json.dumps({"now": now, "expect": expect}, indent=1) + "\n")

    def store(self, **options: bool) -> Store:
        """Return the agent's database, which goes on from step to step."""
        name, kind = FILES[self.agent]
        return kind(self.work / name, **options)

    def put(self, store: Store) -> Callable[[], None]:
        store.close()
        return lambda: shutil.copy(store.path, self.root / store.path.name) and None


def opencode() -> None:
    case = Case("opencode", "injected-parts", "synthetic, ignored and user parts, tool output and files are not the agent's words")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:00", text(CAP), text(SHIP, synthetic=True), role="user")
    db.message("msg_2", "ses_1", "2026-06-10T09:00:05", text(CAP, synthetic=True), text(SHIP, ignored=True),
               tool("read", {"filePath": "/w/app/a.md"}, output=CAP), {"type": "file", "filename": UTC, "source": {"text": {"value": UTC}}},
               {"type": "patch", "files": [FD]}, {"type": "compaction", "text": UTC}, {"type": "subtask", "prompt": UTC})  # fmt: skip
    case.step(case.put(db))

    case = Case("opencode", "compaction-summary", "a summary is a digest of what was injected")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:00", text(CAP), summary=True, mode="compaction", agent="compaction")
    db.message("msg_2", "ses_1", "2026-06-10T09:01:00", text(SHIP), mode="compaction")
    db.message("msg_3", "ses_1", "2026-06-10T09:02:00", text(f"{UTC}, as agreed."), summary=False, mode="build")
    case.step(case.put(db), utc=1)

    case = Case("opencode", "fork-with-new-ids", "a fork copies messages under new ids and times: told by lineage and words")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP), tool("bash", {"command": f"echo '{RELEASE}'"}))
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.session("ses_2", "2026-06-12T09:00:00", parent="ses_1")
    db.message("msg_8", "ses_2", "2026-06-12T09:00:00", text(CAP), tool("bash", {"command": f"echo '{RELEASE}'"}))
    db.message("msg_9", "ses_2", "2026-06-12T09:30:00", text(f"{UTC} is new here."))
    case.step(case.put(db), cap={"ref": 1, "citations": 1, "sessions": 1}, ship={"ref": 1, "citations": 1}, utc=1)

    case = Case("opencode", "fork-named-by-title", "a fork names its origin by title only")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00", title="Retry loop")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.session("ses_2", "2026-06-12T09:00:00", title="Retry loop (fork #1)")
    db.message("msg_2", "ses_2", "2026-06-12T09:00:00", text(CAP))
    db.message("msg_3", "ses_2", "2026-06-13T09:00:00", text(f"Again: {CAP}"))
    db.session("ses_3", "2026-06-14T09:00:00", title="Retry loop (fork #2)")
    db.message("msg_4", "ses_3", "2026-06-14T09:00:00", text(CAP))
    case.step(case.put(db), cap={"ref": 2, "citations": 2, "sessions": 2})

    case = Case("opencode", "subagent-belongs-to-its-trunk", "sub-agents of sub-agents count for the session above all")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.session("ses_2", "2026-06-10T09:01:00", parent="ses_1")
    db.session("ses_3", "2026-06-10T09:02:00", parent="ses_2")
    db.message("msg_2", "ses_3", "2026-06-10T09:02:05", text(f"The rule {BACKOFF} applies."))
    db.session("ses_4", "2026-06-10T09:02:00", parent="ses_gone")
    db.session("ses_5", "2026-06-10T09:02:00", parent="ses_gone")
    db.message("msg_4", "ses_4", "2026-06-10T09:03:00", text(SHIP))
    db.message("msg_5", "ses_5", "2026-06-10T09:04:00", text(f"Then {SHIP}"))
    case.step(case.put(db), cap={"ref": 1, "citations": 2, "sessions": 1}, ship={"ref": 1, "sessions": 1})

    case = Case("opencode", "old-files-beside-the-database", "the old files stay after the move: each id counts once, those only there too")
    old_part_case(case)

    case = Case("opencode", "call-ids-are-not-unique", "two sessions whose tool calls have the same id are two citations")
    db = case.store()
    for number in (1, 2):
        db.session(f"ses_{number}", "2026-06-10T09:00:00")
        db.message(f"msg_{number}", f"ses_{number}", "2026-06-10T09:00:05", tool("bash", {"command": f"echo '{BACKOFF}'"}, call="call_1"))
    case.step(case.put(db), cap={"ref": 2, "citations": 2, "sessions": 2})

    case = Case("opencode", "reverted-and-deleted-rows", "what was undone was written all the same; a shorter store takes nothing back")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.message("msg_2", "ses_1", "2026-06-10T09:00:06", text(SHIP))
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.run("DELETE FROM part WHERE message_id='msg_2'")
    db.message("msg_3", "ses_1", "2026-06-10T10:00:00", text(f"{UTC}!"))
    case.step(case.put(db), cap=1, ship=1, utc=1)

    case = Case("opencode", "growth-takes-a-name-back", "a partial that cited by chance does not count once its word went on")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(f"See {UTC}"), text(f"As {BACKOFF}"))
    case.step(case.put(db), utc=1, cap=1)
    db = case.store()
    db.grow("msg_1_p1", "2026-06-10T09:00:09", text(f"As {BACKOFF}, I cap it. {RELEASE}."))
    case.step(case.put(db), utc=1, cap={"ref": 1, "citations": 1}, ship=1)

    case = Case("opencode", "rows-still-in-the-wal", "new rows are in -wal while the database file does not move")
    db = case.store(wal=True)
    db.run("PRAGMA wal_autocheckpoint=0")
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.run("PRAGMA wal_checkpoint(TRUNCATE)")
    case.step(lambda: wal_and_database(db.path, case.root), cap=1)
    db.message("msg_2", "ses_1", "2026-06-10T09:00:06", text(SHIP))
    case.step(lambda: wal_and_database(db.path, case.root), cap=1, ship=1)
    db.close()

    case = Case("opencode", "older-rows-come-later", "an import brings rows with old times after newer ones were read")
    db = case.store()
    db.session("ses_2", "2026-06-20T09:00:00")
    db.message("msg_2", "ses_2", "2026-06-20T09:00:05", text(CAP))
    case.step(case.put(db), cap=1)
    db = case.store()
    db.session("ses_1", "2026-06-01T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-01T09:00:05", text(CAP))
    case.step(case.put(db), cap={"ref": 2, "sessions": 2})


def old_part_case(case: Case) -> None:
    def old() -> None:
        old_part(case.root, "ses_1", "msg_1", "msg_1_p0", "2026-06-10T09:00:05", text(CAP))
        old_part(case.root, "ses_1", "msg_0", "msg_0_p0", "2026-06-09T09:00:05", text(SHIP))
        old_part(case.root, "ses_7", "msg_7", "msg_7_p0", "2026-06-10T09:00:05", text(f"My {SHIP}"), parentID="ses_1")

    case.step(old, cap=1, ship={"ref": 2, "sessions": 1})
    db = case.store()
    db.session("ses_1", "2026-06-09T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.message("msg_2", "ses_1", "2026-06-11T09:00:05", text(f"{UTC}, still."))
    case.step(case.put(db), cap={"ref": 1, "citations": 1}, ship={"ref": 2, "sessions": 1}, utc=1)


def goose() -> None:
    case = Case("goose", "conversation-rewritten", "a compaction deletes and inserts all rows under new numbers")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:00", text("fix it"), role="user")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP), request("developer__shell", {"command": f"echo '{RELEASE}'"}))
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.rewrite("20260610_1")
    db.message("20260610_1", "2026-06-12T09:00:05", text(f"{UTC} now."))
    case.step(case.put(db), cap={"ref": 1, "citations": 1}, ship={"ref": 1, "citations": 1}, utc=1)

    case = Case("goose", "summary-for-the-agent-only", "a summary that no user sees is a digest; hidden from the agent is still written")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP), userVisible=True, agentVisible=False)
    db.message("20260610_1", "2026-06-10T09:30:00", text(SHIP), userVisible=False, agentVisible=True)
    case.step(case.put(db), cap=1)

    case = Case("goose", "injected-rows", "users, tool answers and thoughts are not the agent's words; a look-up is no citation")
    db = case.store()
    db.session("20260610_1")
    answer = {"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": [text(SHIP)]}}
    db.message("20260610_1", "2026-06-10T09:00:00", text(CAP), answer, role="user")
    db.message("20260610_1", "2026-06-10T09:00:05", {"type": "thinking", "thinking": UTC}, request("developer__shell", {"command": f"rg '{FD}'"}), answer)
    case.step(case.put(db))

    case = Case("goose", "legacy-files-beside-the-database", "old JSONL was imported and left on disk: never read")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP))
    put = case.put(db)

    def lay() -> None:
        put()
        old = {"role": "assistant", "created": 1781082005, "content": [text(CAP), text(SHIP)]}
        (case.root / "20260610_090000.jsonl").write_text(json.dumps({"working_dir": "/w/app"}) + "\n" + json.dumps(old) + "\n")

    case.step(lay, cap={"ref": 1, "sessions": 1})

    case = Case("goose", "same-second-same-words", "two sessions that say the same in the same second, with the same call id, are two")
    db = case.store()
    for name in ("20260610_1", "20260610_2"):
        db.session(name)
        db.message(name, "2026-06-10T09:00:05", text(CAP))
        db.message(name, "2026-06-10T09:00:05", request("developer__shell", {"command": f"echo '{RELEASE}'"}))
    case.step(case.put(db), cap={"ref": 2, "citations": 2}, ship={"ref": 2, "citations": 2})

    case = Case("goose", "days-of-the-rows", "the day is that of the row's own second, not of the reading")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T23:59:59", text(CAP))
    db.message("20260610_1", "2026-06-11T00:00:00", text(f"Again: {CAP}"))
    case.step(case.put(db), cap={"ref": 2, "last": "2026-06-11", "sessions": 1})

    case = Case("goose", "idle-store-in-wal-mode", "a store that nobody has open has no -wal; it is read all the same")
    db = case.store(wal=True)
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP))
    case.step(case.put(db), cap=1)


def hermes() -> None:
    case = Case("hermes", "compaction-splits-the-session", "the child begins with copies under new numbers and times; the chain is one session")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:00", "fix it", role="user")
    db.message("a", "2026-06-10T09:00:05", CAP)
    db.message("a", "2026-06-10T09:00:07", SHIP, calls=[call("terminal", {"command": f"echo '{RELEASE}'"})])
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.session("b", parent="a")
    db.message("b", "2026-06-12T10:00:00", CAP)
    db.message("b", "2026-06-12T10:00:01", SHIP, calls=[call("terminal", {"command": f"echo '{RELEASE}'"})])
    db.session("c", parent="b")
    db.message("c", "2026-06-13T10:00:00", CAP)
    case.step(case.put(db), cap={"ref": 1, "citations": 1, "sessions": 1}, ship={"ref": 1, "sessions": 1})
    db = case.store()
    db.message("c", "2026-06-13T11:00:00", f"Once more: {CAP}")
    case.step(case.put(db), cap={"ref": 2, "citations": 2, "sessions": 1}, ship=1)

    case = Case("hermes", "summary-in-the-agents-voice", "the summary that opens a child may carry the role assistant")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:05", f"[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted. {CAP}")
    db.message("a", "2026-06-10T09:00:06", f"[CONTEXT SUMMARY]: {SHIP}")
    db.message("a", "2026-06-10T09:00:07", f"{UTC}, I say.")
    case.step(case.put(db), utc=1)

    case = Case("hermes", "curator-turn", "what the agent answers to the harness's review is no work, until the user speaks again")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:00", HARNESS, role="user")
    db.message("a", "2026-06-10T09:00:05", CAP, calls=[call("skill_manage", {"text": SHIP})])
    db.message("a", "2026-06-10T09:00:06", "ok", role="tool")
    case.step(case.put(db))
    db = case.store()
    db.message("a", "2026-06-10T09:00:07", SHIP)
    db.message("a", "2026-06-10T09:01:00", "go on", role="user")
    db.message("a", "2026-06-10T09:01:05", f"{UTC}, as you like.")
    case.step(case.put(db), utc=1)

    case = Case("hermes", "injected-rows", "users, tools, system rows and thoughts are not the agent's words; a look-up is no citation")
    db = case.store()
    db.session("a")
    for role in ("user", "system", "tool", "session_meta"):
        db.message("a", "2026-06-10T09:00:00", CAP, role=role)
    db.insert("messages", session_id="a", role="assistant", content="", timestamp=1781082005.5, reasoning=SHIP,
              tool_calls=json.dumps([call("read_file", {"path": f"docs/{UTC}.md"}), call("terminal", {"command": f"grep '{FD}' x"})]))  # fmt: skip
    case.step(case.put(db))

    case = Case("hermes", "content-as-encoded-parts", "a message of several parts is stored as JSON behind a marker")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:05", "\0json:" + json.dumps([{"type": "text", "text": CAP}, {"type": "image_url", "image_url": {"url": UTC}}]))
    case.step(case.put(db), cap=1)

    case = Case("hermes", "json-logs-beside-the-database", "the old JSON logs repeat the database: never read")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:05", CAP)
    put = case.put(db)

    def lay() -> None:
        put()
        (case.root / "sessions").mkdir()
        log = {"session_id": "a", "messages": [{"role": "assistant", "content": f"{CAP} {SHIP}"}]}
        (case.root / "sessions/session_a.json").write_text(json.dumps(log))

    case.step(lay, cap={"ref": 1, "sessions": 1})

    case = Case("hermes", "delegate-belongs-to-its-trunk", "a delegated task is a child session: it counts for the one above all")
    db = case.store()
    db.session("a")
    db.session("b", parent="a")
    db.session("c", parent="b")
    db.message("a", "2026-06-10T09:00:05", CAP)
    db.message("c", "2026-06-10T09:10:05", f"The rule {BACKOFF} applies here.")
    case.step(case.put(db), cap={"ref": 1, "citations": 2, "sessions": 1})


def codex() -> None:
    thread = "01900000-0000-7000-8000-000000000001"
    name = f"rollout-2026-06-10T09-00-00-{thread}.jsonl"

    def rollout(*extra: str) -> bytes:
        meta = {"id": thread, "timestamp": "2026-06-10T09:00:00.000Z", "cwd": "/w/app"}
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CAP}]}
        lines = [("session_meta", meta), ("response_item", item), ("response_item", item | {"id": "msg_00000000000000000001", "content": [{"type": "output_text", "text": SHIP}]})]
        lines += [("response_item", item | {"content": [{"type": "output_text", "text": words}]}) for words in extra]
        return b"".join(
            json.dumps({"timestamp": f"2026-06-10T09:00:0{index}.000Z", "type": kind, "payload": payload}).encode() + b"\n"
            for index, (kind, payload) in enumerate(lines)
        )

    def lay(case: Case, folder: str, data: bytes, *, packed: bool) -> Callable[[], None]:
        def write() -> None:
            path = case.root / folder / (name + (".zst" if packed else ""))
            path.parent.mkdir(parents=True)
            path.write_bytes(zstandard.ZstdCompressor(level=3).compress(data) if packed else data)

        return write

    case = Case("codex", "archived-packed-and-back", "one rollout under three names: sessions, archive, packed, and unpacked again")
    live, stored = f"{ROOTS['codex']}/sessions/2026/06/10/{name}", f"{ROOTS['codex']}/archived_sessions/{name}"
    once = {"ref": 1, "citations": 1, "sessions": 1}
    case.step(lay(case, "sessions/2026/06/10", rollout(), packed=False), cap=once, ship=once)
    case.step(ops=[["rename", live, stored]], cap=once, ship=once)
    case.step(lay(case, "archived_sessions", rollout(), packed=True), ops=[["delete", stored]], cap=once, ship=once)
    longer = rollout(f"{UTC}, then.")
    case.step(lay(case, "archived_sessions", longer, packed=False), ops=[["delete", stored + ".zst"]], cap=once, ship=once, utc=1)

    case = Case("codex", "packed-beside-its-plain-file", "a packed rollout is read first, the plain one that hides it holds more")
    case.step(lay(case, "archived_sessions", rollout(), packed=True), cap=once, ship=once)
    case.step(lay(case, "archived_sessions", longer, packed=False), cap=once, ship=once, utc=1)


if __name__ == "__main__":
    for lay_all in (opencode, goose, hermes, codex):
        lay_all()
    sys.stdout.write("laid\n")
