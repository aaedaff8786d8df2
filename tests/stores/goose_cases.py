"""The cases of Goose."""

import json
from datetime import UTC as UTC_ZONE
from datetime import datetime

from agent_stores import request, text
from case_laying import CAP, FD, RELEASE, SHIP, UTC, Case


def lay() -> None:
    lay_old_files()
    case = Case("goose", "conversation-rewritten", "a compaction deletes and inserts all rows under new numbers")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:00", text("fix it"), role="user")
    db.message(
        "20260610_1", "2026-06-10T09:00:05", text(CAP), request("developer__shell", {"command": f"echo '{RELEASE}'"})
    )
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.rewrite("20260610_1")
    db.message("20260610_1", "2026-06-12T09:00:05", text(f"{UTC} now."))
    case.step(case.put(db), cap={"ref": 1, "citations": 1}, ship={"ref": 1, "citations": 1}, utc=1)

    case = Case(
        "goose",
        "summary-for-the-agent-only",
        "a summary that no user sees is a digest; hidden from the agent is still written",
    )
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP), userVisible=True, agentVisible=False)
    db.message("20260610_1", "2026-06-10T09:30:00", text(SHIP), userVisible=False, agentVisible=True)
    case.step(case.put(db), cap=1)

    case = Case(
        "goose", "injected-rows", "users, tool answers and thoughts are not the agent's words; a look-up is no citation"
    )
    db = case.store()
    db.session("20260610_1")
    answer = {"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": [text(SHIP)]}}
    db.message("20260610_1", "2026-06-10T09:00:00", text(CAP), answer, role="user")
    db.message(
        "20260610_1",
        "2026-06-10T09:00:05",
        {"type": "thinking", "thinking": UTC},
        request("developer__shell", {"command": f"rg '{FD}'"}),
        answer,
    )
    case.step(case.put(db))

    case = Case("goose", "legacy-files-beside-the-database", "old JSONL was imported and left on disk: never read")
    db = case.store()
    db.session("20260610_1")
    db.message("20260610_1", "2026-06-10T09:00:05", text(CAP))
    put = case.put(db)

    def both() -> None:
        put()
        old = {"role": "assistant", "created": 1781082005, "content": [text(CAP), text(SHIP)]}
        (case.root / "20260610_090000.jsonl").write_text(
            json.dumps({"working_dir": "/w/app"}) + "\n" + json.dumps(old) + "\n"
        )

    case.step(both, cap={"ref": 1, "sessions": 1})

    case = Case(
        "goose",
        "same-second-same-words",
        "two sessions that say the same in the same second, with the same call id, are two",
    )
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

    case = Case(
        "goose", "copied-session", "a copied session has a new name and the same rows: three equal ones in order tell"
    )
    db = case.store()
    words = (CAP, SHIP, f"{UTC}, I say.")
    for name in ("20260610_1", "20260612_1"):
        db.session(name)
        for second, said in enumerate(words):
            db.message(name, f"2026-06-10T09:00:0{second}", text(said))
    db.message("20260612_1", "2026-06-12T09:00:00", text(f"Own: {CAP}"))
    db.session("20260613_1")
    for second, said in enumerate(words[:2]):
        db.message("20260613_1", f"2026-06-10T09:00:0{second}", text(said))
    case.step(case.put(db), cap={"ref": 3, "sessions": 3}, ship={"ref": 2, "sessions": 2}, utc=1)


def lay_old_files() -> None:
    case = Case(
        "goose",
        "legacy-files-alone",
        "without a database old JSONL is read; what a later import makes of it is the same",
    )
    write = {"command": "write", "path": "/w/app/a.py", "file_text": f"# {RELEASE}"}
    look = {"command": "view", "path": UTC}
    answer = {"type": "toolResponse", "id": "c", "toolResult": {"status": "success", "value": [text(UTC)]}}
    rows = [
        ("user", 1781082000, [text(FD)]),
        ("assistant", 1781082005, [text(CAP), request("developer__text_editor", write)]),
        ("user", 1781082006, [answer]),
        ("assistant", 1781082007, [request("developer__text_editor", look)]),
    ]
    lines: list[object] = [{"working_dir": "/w/app", "description": FD, "message_count": 4}]
    lines += [{"role": role, "created": created, "content": content} for role, created, content in rows]

    def old() -> None:
        (case.root / "20260610_090000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    once = {"ref": 1, "citations": 1, "sessions": 1, "last": "2026-06-10"}
    case.step(old, cap=once, ship=once)
    db = case.store()
    db.session("20260610_090000")
    for role, created, content in rows:
        db.message("20260610_090000", datetime.fromtimestamp(created, UTC_ZONE).isoformat()[:19], *content, role=role)
    case.step(case.put(db), cap=once, ship=once)
