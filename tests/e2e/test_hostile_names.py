"""Names, links and secrets made to do harm: nothing is read or written outside, and no secret is kept."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path

import pytest

from kbd.core import relyaml
from tests.e2e.stranger import OTHER, TITLE, Stranger


@pytest.fixture
def world(tmp_path: Path) -> Stranger:
    # A folder of its own: what a test plants elsewhere lies beside it.
    root = tmp_path.resolve() / "home-of-kbd"
    root.mkdir()
    return Stranger(root)


ODD_NAMES = [
    b"-rf",
    b"--help",
    b"new\nline",
    b"tab\ttab",
    b"esc\x1b[1m",
    b"quote'\"`$(id)",
    b"a b",
    "日本".encode(),
    b"%s%n",
]


def test_files_of_any_name_are_read_and_written(world: Stranger) -> None:
    titles = {name: f"Lesson number {number} of an odd name" for number, name in enumerate(ODD_NAMES)}
    for name, title in titles.items():
        os.rename(world.lesson(title), os.path.join(os.fsencode(world.root / "kb"), name + b".md"))
        world.say(f"as in {title} we close it", title, name=os.fsdecode(name) + ".jsonl")
        log = world.root / "logs" / (os.fsdecode(name) + ".log")
        log.write_text(f"2026-06-10 10:00 as in {title} we close it\n\n")
    assert world.read().exit_code == 0
    assert world.refs() == dict.fromkeys(titles.values(), 2)
    for name, title in titles.items():
        with open(os.path.join(os.fsencode(world.root / "kb"), name + b".md"), encoding="utf-8") as note:
            assert f"**{title}**" in (text := note.read())
            assert "ref:2" in text
        assert world.run("show", title).exit_code == 0


def test_name_that_is_no_utf_8_is_told_and_stops_nothing(world: Stranger) -> None:
    world.lesson()
    world.say(f"as in {TITLE} we close it")
    for folder, suffix in (("kb", b".md"), ("claude/projects/-w", b".jsonl"), ("logs", b".log")):
        path = os.path.join(os.fsencode(world.root), folder.encode(), b"x\xff\x1b" + suffix)
        with open(path, "w") as out:
            out.write(f"- **{OTHER}** x\n")
    os.mkdir(os.path.join(os.fsencode(world.root / "logs"), b"d\xfe"), 0)
    done = world.read()
    assert done.exit_code == 1
    assert done.stderr.count("its name is not UTF-8; rename it") == 3
    assert world.refs() == {TITLE: 1}
    assert "x\\xff" in world.run("status").stdout


def test_nothing_outside_of_a_source_is_read(world: Stranger) -> None:
    world.lesson()
    outside = world.root.parent / "outside"
    outside.mkdir()
    (outside / "a.log").write_text(f"2026-06-10 10:00 as in {TITLE} we close it\n\n")
    logs = world.root / "logs"
    (logs / "link.log").symlink_to(outside / "a.log")
    (logs / "up.log").symlink_to("../../outside/a.log")
    (logs / "folder").symlink_to(outside)
    (logs / "zero.log").symlink_to("/dev/zero")
    (logs / "loop.log").symlink_to("loop.log")
    os.mkfifo(logs / "pipe.log")
    folder = os.open(logs, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{folder}/socket.log")  # the name of a socket has room for 107 characters
        world.read()
    os.close(folder)
    assert world.refs() == {TITLE: 0}


def test_paths_in_a_transcript_open_nothing_and_leave_their_folder_nowhere(world: Stranger) -> None:
    world.lesson()
    pipe = world.root.parent / "pipe.md"
    os.mkfifo(pipe)
    for number, file in enumerate(
        (
            f"../{'../' * 40}etc/passwd",
            "/etc/../../etc/shadow",
            str(pipe),
            "~root/.ssh/id",
            "/w/../x.py",
            "a\0b",
            "/w/ok.py",
        )
    ):
        world.say(f"as in {TITLE} we close it", f"s{number}", cwd="/w/../w", file=file)
        world.say(f"see {file}, as in {TITLE}", f"p{number}")
    world.read()
    relations = relyaml.parse((world.root / "kb" / ".knowledge-graph.yaml").read_bytes(), "r").relations
    named = {relation.o for relation in relations}
    assert "ok.py" in named
    assert not [name for name in named if ".." in name or name.startswith(("/", "~")) or not name.isprintable()]


@pytest.mark.parametrize("option", ["--graph", "--schema"])
@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "link/x", "~root/x", "a/../../x"])
def test_path_of_a_caller_stays_in_its_root(
    world: Stranger, option: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    (world.root / "link").symlink_to("/etc")
    done = world.run("graph", "list", option, path)
    assert done.exit_code == 6
    assert "outside" in done.stderr


def test_links_of_a_clone_lead_kbd_into_no_file_of_another_kind(world: Stranger) -> None:
    """A stranger's repository: its archive is a link to a start file, and its words would be run there."""
    start = world.root.parent / ".bashrc"
    start.write_text("alias ls=ls\n")
    world.note("lessons.md", f"- **{TITLE}** x (2024-01-01)\n  touch /tmp/pwned\n")
    for name in ("lessons-archive.md", "evil.md", ".kbd-writer", ".knowledge-graph.yaml"):
        (world.root / "kb" / name).symlink_to(start)
    world.note("evil-archive.md", f"- **{OTHER}** x (2024-01-01)\n  touch /tmp/pwned\n  <!-- decay:archived -->\n")
    world.say(f"as in {OTHER} we close it", file="/w/a.py")
    for day in ("2026-06-11", "2026-06-12", "2026-12-30", "2027-06-30", "2027-08-30"):
        world.now = day
        world.run("run", "--once")
        world.run("restore", OTHER)
        world.run("set", TITLE, "--state", "archived")
    assert start.read_text() == "alias ls=ls\n"
    assert [path.name for path in start.parent.iterdir() if path.name.startswith(".")] == [".bashrc"]


def test_planted_lock_and_temporary_names_are_not_followed(world: Stranger) -> None:
    note, victim = world.lesson(), world.root.parent / "victim"
    victim.write_text("mine")
    note.with_name("lessons.md.lock").symlink_to(victim)
    (world.root / "kb" / ".kbd-tmp").symlink_to(victim)
    world.say(f"as in {TITLE} we close it")
    world.read()
    world.read()
    assert "ref:1" in note.read_text()
    assert victim.read_text() == "mine"
    for planted in ("daemon.lock", "heartbeat.json", "ledger-generation", "pause.json"):
        (world.state / planted).unlink(missing_ok=True)
        (world.state / planted).symlink_to(victim)
        world.run("run", "--once")
        world.run("pause")
        world.run("resume")
        assert victim.read_text() == "mine", planted


@pytest.mark.parametrize("planted", ["daemon.lock", "heartbeat.json", "ledger-generation", "pause.json"])
def test_second_name_of_a_planted_file_is_not_written_through(world: Stranger, planted: str) -> None:
    world.lesson()
    victim = world.root.parent / "victim"
    victim.write_text("mine")
    os.link(victim, world.state / planted)
    for words in ("run --once", "pause", "resume"):
        world.run(*words.split())
    assert victim.read_text() == "mine"
    assert planted != "daemon.lock" or "second name" in world.run("run", "--once").output


def test_purge_follows_no_link_out_of_the_state(world: Stranger) -> None:
    world.lesson()
    world.say(f"as in {TITLE} we close it")
    world.read()
    outside = world.root.parent / "outside"
    outside.mkdir()
    (outside / "mine.json").write_text("{}")
    relations = world.state / "relations"
    if relations.exists():
        relations.rename(world.state / "relations-before")
    relations.symlink_to(outside)
    assert world.run("purge", "--session", "s1", "--yes").exit_code == 0
    assert [path.name for path in outside.iterdir()] == ["mine.json"]


def test_name_in_a_foreign_folder_of_a_hard_linked_file_says_the_same(world: Stranger) -> None:
    note, foreign = world.lesson(), world.root.parent / "foreign"
    foreign.mkdir()
    os.link(note, foreign / "name")
    world.say(f"as in {TITLE} we close it")
    world.read()
    assert note.read_bytes() == (foreign / "name").read_bytes()
    assert b"ref:1" in note.read_bytes()
    assert sorted(path.name for path in foreign.iterdir()) == ["name"]


SECRETS = ("sk-ant-api03-" + "aB3" * 20, "AKIA" + "AB12" * 4)


@pytest.mark.parametrize("secret", SECRETS)
def test_secret_is_in_no_byte_that_kbd_keeps(world: Stranger, secret: str) -> None:
    world.lesson()
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + ("aB3/" * 16 + "\n") * 24
        + "cD4/" * 5
        + "==\n-----END RSA PRIVATE KEY-----"
    )
    world.say(f"export KEY={secret}; as in {TITLE} we close it with {secret}", secret, file=f"/w/{secret}.py")
    world.say(f"{key}\nas in {TITLE}\n{key}", "other")
    message = {"id": secret, "role": "assistant", "content": [{"type": "text", "text": f"so {TITLE}"}]}
    line = {"type": "assistant", "uuid": secret, "sessionId": secret, "timestamp": "2026-06-10T09:00:00Z"}
    with world.say(f"{TITLE} it is", "third").open("a") as out:
        out.write(json.dumps(line | {"message": message}) + "\n")
    world.read()
    assert world.refs() == {TITLE: 3}
    kept = world.state_bytes() + b"".join(path.read_bytes() for path in (world.root / "kb").iterdir() if path.is_file())
    for words in (secret, "aB3/aB3/", "cD4/cD4/"):
        assert words.encode() not in kept
        assert words not in world.run("show", TITLE, "--json").stdout
    assert world.run("purge", "--session", secret, "--yes").exit_code == 0
    assert world.refs() == {TITLE: 2}


def test_state_is_closed_to_others_under_any_umask(world: Stranger) -> None:
    world.lesson()
    world.say(f"as in {TITLE} we close it")
    before = os.umask(0)
    try:
        for words in (
            "run --once",
            "graph list --base lessons",
            "list",
            "context",
            f"pin|{TITLE}",
            "pause",
            "status",
            "resume",
        ):
            world.run(*words.split("|") if "|" in words else words.split())
        with world.ledger().ledger.transaction():
            open_ones = [
                path for path in [world.state, *world.state.rglob("*")] if stat.S_IMODE(path.stat().st_mode) & 0o077
            ]
            names = {path.name for path in world.state.rglob("*")}
    finally:
        os.umask(before)
    assert not open_ones
    assert {"ledger.db", "ledger.db-wal", "ledger.db-shm", "backups", "locks", "graphs"} <= names


def test_state_that_others_may_write_into_is_refused_and_told(world: Stranger) -> None:
    world.lesson()
    world.read()
    world.state.chmod(0o777)
    done = world.run("run", "--once")
    assert done.exit_code == 2
    assert "others may write into it" in done.stderr
    assert "chmod 700" in done.stderr
