"""The cases of OpenCode."""

from agent_stores import old_part, text, tool, wal_and_database
from case_laying import BACKOFF, CAP, FD, RELEASE, SHIP, UTC, Case


def lay() -> None:
    case = Case(
        "opencode",
        "injected-parts",
        "synthetic, ignored and user parts, tool output and files are not the agent's words",
    )
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:00", text(CAP), text(SHIP, synthetic=True), role="user")
    db.message(
        "msg_2",
        "ses_1",
        "2026-06-10T09:00:05",
        text(CAP, synthetic=True),
        text(SHIP, ignored=True),
        tool("read", {"filePath": "/w/app/a.md"}, output=CAP),
        {"type": "file", "filename": UTC, "source": {"text": {"value": UTC}}},
        {"type": "patch", "files": [FD]},
        {"type": "compaction", "text": UTC},
        {"type": "subtask", "prompt": UTC},
    )
    case.step(case.put(db))

    case = Case("opencode", "compaction-summary", "a summary is a digest of what was injected")
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:00", text(CAP), summary=True, mode="compaction", agent="compaction")
    db.message("msg_2", "ses_1", "2026-06-10T09:01:00", text(SHIP), mode="compaction")
    db.message("msg_3", "ses_1", "2026-06-10T09:02:00", text(f"{UTC}, as agreed."), summary=False, mode="build")
    case.step(case.put(db), utc=1)

    case = Case(
        "opencode", "fork-with-new-ids", "a fork copies messages under new ids and times: told by lineage and words"
    )
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

    case = Case(
        "opencode",
        "old-files-beside-the-database",
        "the old files stay after the move: each id counts once, those only there too",
    )
    old_part_case(case)

    case = Case(
        "opencode", "call-ids-are-not-unique", "two sessions whose tool calls have the same id are two citations"
    )
    db = case.store()
    for number in (1, 2):
        db.session(f"ses_{number}", "2026-06-10T09:00:00")
        db.message(
            f"msg_{number}",
            f"ses_{number}",
            "2026-06-10T09:00:05",
            tool("bash", {"command": f"echo '{BACKOFF}'"}, call="call_1"),
        )
    case.step(case.put(db), cap={"ref": 2, "citations": 2, "sessions": 2})

    case = Case(
        "opencode",
        "reverted-and-deleted-rows",
        "what was undone was written all the same; a shorter store takes nothing back",
    )
    db = case.store()
    db.session("ses_1", "2026-06-10T09:00:00")
    db.message("msg_1", "ses_1", "2026-06-10T09:00:05", text(CAP))
    db.message("msg_2", "ses_1", "2026-06-10T09:00:06", text(SHIP))
    case.step(case.put(db), cap=1, ship=1)
    db = case.store()
    db.run("DELETE FROM part WHERE message_id='msg_2'")
    db.message("msg_3", "ses_1", "2026-06-10T10:00:00", text(f"{UTC}!"))
    case.step(case.put(db), cap=1, ship=1, utc=1)

    case = Case(
        "opencode", "growth-takes-a-name-back", "a partial that cited by chance does not count once its word went on"
    )
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
