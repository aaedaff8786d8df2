"""The cases of Hermes."""

import json

from agent_stores import call
from case_laying import BACKOFF, CAP, FD, RELEASE, SHIP, UTC, Case

HARNESS = "Review the conversation above and update the skill library. Be thorough."


def lay() -> None:
    lay_old_files()
    case = Case(
        "hermes",
        "compaction-splits-the-session",
        "the child begins with copies under new numbers and times; the chain is one session",
    )
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

    case = Case(
        "hermes",
        "curator-turn",
        "what the agent answers to the harness's review is no work, until the user speaks again",
    )
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

    case = Case(
        "hermes",
        "injected-rows",
        "users, tools, system rows and thoughts are not the agent's words; a look-up is no citation",
    )
    db = case.store()
    db.session("a")
    for role in ("user", "system", "tool", "session_meta"):
        db.message("a", "2026-06-10T09:00:00", CAP, role=role)
    db.insert(
        "messages",
        session_id="a",
        role="assistant",
        content="",
        timestamp=1781082005.5,
        reasoning=SHIP,
        tool_calls=json.dumps(
            [call("read_file", {"path": f"docs/{UTC}.md"}), call("terminal", {"command": f"grep '{FD}' x"})]
        ),
    )
    case.step(case.put(db))

    case = Case("hermes", "content-as-encoded-parts", "a message of several parts is stored as JSON behind a marker")
    db = case.store()
    db.session("a")
    db.message(
        "a",
        "2026-06-10T09:00:05",
        "\0json:" + json.dumps([{"type": "text", "text": CAP}, {"type": "image_url", "image_url": {"url": UTC}}]),
    )
    case.step(case.put(db), cap=1)

    case = Case("hermes", "json-logs-beside-the-database", "the old JSON logs repeat the database: never read")
    db = case.store()
    db.session("a")
    db.message("a", "2026-06-10T09:00:05", CAP)
    put = case.put(db)

    def both() -> None:
        put()
        (case.root / "sessions").mkdir()
        log = {"session_id": "a", "messages": [{"role": "assistant", "content": f"{CAP} {SHIP}"}]}
        (case.root / "sessions/session_a.json").write_text(json.dumps(log))

    case.step(both, cap={"ref": 1, "sessions": 1})

    case = Case(
        "hermes",
        "delegate-belongs-to-its-trunk",
        "a delegated task is a child session: it counts for the one above all",
    )
    db = case.store()
    db.session("a")
    db.session("b", parent="a")
    db.session("c", parent="b")
    db.message("a", "2026-06-10T09:00:05", CAP)
    db.message("c", "2026-06-10T09:10:05", f"The rule {BACKOFF} applies here.")
    case.step(case.put(db), cap={"ref": 1, "citations": 2, "sessions": 1})


def lay_old_files() -> None:
    case = Case("hermes", "json-logs-alone", "without a database the old JSON of a session is read, whole at each save")
    call = {
        "id": "c",
        "function": {"name": "terminal", "arguments": json.dumps({"command": f"rg '{UTC}'; echo '{RELEASE}'"})},
    }
    turns: list[object] = [
        {"role": "user", "content": FD},
        {"role": "assistant", "content": CAP, "reasoning": UTC, "tool_calls": [call]},
        {"role": "tool", "content": UTC},
        {"role": "user", "content": "Review the conversation above and consider saving to memory if appropriate."},
        {"role": "assistant", "content": f"Saved {UTC}."},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": CAP},
    ]

    def saved(count: int) -> None:
        (case.root / "sessions").mkdir()
        log = {
            "session_id": "a",
            "session_start": "2026-06-10T09:00:00.5",
            "system_prompt": FD,
            "messages": turns[:count],
        }
        (case.root / "sessions/session_a.json").write_text(json.dumps(log))

    once = {"ref": 1, "citations": 1, "sessions": 1, "last": "2026-06-10"}
    case.step(lambda: saved(2), cap=once, ship=once)
    case.step(lambda: saved(7), cap=once | {"citations": 2}, ship=once)
