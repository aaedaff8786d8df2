"""The command line itself: global options, exit codes, pipes, terminals."""

import errno
import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from kbd import __version__
from kbd.cli import session as session_module
from kbd.cli.main import COMMANDS, _exit_code, main
from kbd.cli.session import Session, parse_now
from kbd.config.sections import AGENTS
from kbd.errors import KbdError, LockTimeout, UsageError
from kbd.sources.registry import formats
from tests.cli.test_listing_command import LOCK

KBD = [sys.executable, "-m", "kbd"]


def call(world, *args, stdout=subprocess.PIPE, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    return subprocess.Popen(
        [*KBD, *world.options(), *args],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=clean | {"HOME": str(world.root / "home"), "TERM": "xterm"} | env,
    )


def on_terminal(world, *args, **env):
    """Return what the command writes to a terminal."""
    leader, follower = pty.openpty()
    process = call(world, *args, stdout=follower, **env)
    os.close(follower)
    text = b""
    try:
        while chunk := os.read(leader, 1 << 16):
            text += chunk
    except OSError:  # EIO: the other end is closed
        pass
    os.close(leader)
    process.communicate()
    return text.decode()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-06-11", datetime(2026, 6, 11, 12, tzinfo=UTC)),
        ("2026-06-11T09:30", datetime(2026, 6, 11, 9, 30, tzinfo=UTC)),
        ("2026-06-11T09:30:00Z", datetime(2026, 6, 11, 9, 30, tzinfo=UTC)),
        ("2026-06-11 09:30:00+02:00", datetime(2026, 6, 11, 7, 30, tzinfo=UTC)),
    ],
)
def test_now_is_a_date_or_a_time(text, expected):
    assert parse_now(text) == expected


@pytest.mark.parametrize("text", ["", "today", "2026-13-01", "2026-06-31", "11.06.2026", "0001-01-01T00:00+14:00", "٢"])
def test_now_refuses_anything_else(text):
    with pytest.raises(UsageError):
        parse_now(text)


def test_a_session_keeps_the_given_time_and_knows_the_real_one(tmp_path):
    given = datetime(2020, 1, 1, tzinfo=UTC)
    session = Session(None, str(tmp_path), given, {"HOME": "/h"})
    assert (session.now(), session.given_now, session.home) == (given, True, "/h")
    assert session.real_now() > given


def test_agents_known_by_the_names_of_their_modules_are_those_that_can_be_read():
    assert session_module._agents() & AGENTS == set(formats()) & AGENTS


def test_an_agent_that_cannot_be_read_yet_is_a_problem_in_status(world):
    unread = sorted(AGENTS - set(formats()))
    if unread:
        config = world.root / "config.yaml"
        config.write_text(config.read_text() + f"  - {{agent: {unread[0]}}}\n")
        assert [problem["code"] for problem in world.answer("status")["problems"]] == ["agent_unsupported"]


def test_every_command_is_there_and_has_help():
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, result.output
    listing = CliRunner().invoke(main, ["--help"]).stdout
    assert all(f"\n  {name}" in listing for name in COMMANDS)


@pytest.mark.parametrize("args", [["--help"], ["graph", "--help"], ["service", "--help"]])
def test_each_command_is_listed_in_one_line_that_is_not_cut(args):
    listing = CliRunner().invoke(main, args, env={"COLUMNS": "80"}).stdout.partition("Commands:\n")[2]
    assert [line for line in listing.splitlines() if line.endswith("...") or line.startswith("   ")] == []


def test_help_imports_no_command():
    code = (
        "import sys\nfrom kbd.cli.main import main\nmain(['--help'], standalone_mode=False)\n"
        "print(*(name for name in sys.modules if name.startswith('kbd')), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    light = {"kbd", "kbd.cli", "kbd.cli.lazy", "kbd.cli.main", "kbd.errors", "kbd.streams"}
    assert set(result.stderr.split()) == light


@pytest.mark.parametrize("args, meant", [(["stauts"], "status"), (["graph", "creat"], "create")])
def test_a_mistyped_command_is_told_what_it_may_mean(world, args, meant):
    assert f"Did you mean '{meant}'?" in world.run(*args).stderr


def test_version():
    assert CliRunner().invoke(main, ["--version"]).stdout == f"kbd, version {__version__}\n"


@pytest.mark.parametrize("args", [["nosuch"], ["list", "--nosuch"], ["show"], ["--now", "x", "list"], ["--nosuch"]])
def test_wrong_usage_is_exit_2(world, args):
    assert CliRunner().invoke(main, args).exit_code == 2


def test_a_wrong_configuration_is_exit_2_with_all_faults(world):
    (world.root / "config.yaml").write_text("bases: [{nam: x}]\ndecay: {dormant_day: 3}\n")
    result = world.run("list")
    assert result.exit_code == 2
    assert "dormant_day" in result.stderr and "nam" in result.stderr
    assert result.stdout == ""


def test_a_missing_configuration_is_exit_2(world):
    (world.root / "config.yaml").unlink()
    assert world.run("status").exit_code == 2


@pytest.mark.parametrize(
    "raised, code",
    [
        (LockTimeout("held"), 4),
        (KbdError("x"), 1),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a fault"), 1),
        (BrokenPipeError(), 0),
    ],
)
def test_what_is_raised_becomes_an_exit_code(raised, code, capfd):
    def call():
        raise raised

    saved = os.dup(1)
    try:
        assert _exit_code(call) == code
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def test_a_fault_of_kbd_is_one_line_and_a_traceback_on_demand(capsys, monkeypatch):
    def call():
        raise ZeroDivisionError("by nothing")

    monkeypatch.delenv("KBD_DEBUG", raising=False)
    _exit_code(call)
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("KBD_DEBUG", "1")
    _exit_code(call)
    assert "Traceback" in capsys.readouterr().err


def test_the_module_is_the_command(world):
    world.ledger().entry(LOCK)
    process = call(world, "list", "--json")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["entries"][0]["title"] == LOCK


def test_status_of_a_real_process_is_exit_3_without_a_daemon(world):
    process = call(world, "status", "--json")
    out, _ = process.communicate()
    assert (process.returncode, json.loads(out)["health"]) == (3, "down")


def test_a_reader_that_leaves_is_no_error(world):
    books = world.ledger()
    for number in range(300):
        books.entry(f"Title number {number} " + "x" * 400)
    process = call(world, "list")
    with process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_an_answer_that_nobody_takes_is_a_fault_of_the_world(world):
    world.ledger().entry(LOCK)
    for command in (["list"], ["list", "--json"], ["--help"], ["list", "--help"]):
        with open("/dev/full", "w") as full:
            process = call(world, *command, stdout=full)
            _, err = process.communicate()
        assert process.returncode == 1
        assert err.startswith(b"kbd: output: No space left on device; ") and err.count(b"\n") == 1


def test_a_closed_stdout_is_no_fault(world):
    world.ledger().entry(LOCK)
    words = [*KBD, *world.options(), "list"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_file_out_of_reach_is_named_with_what_to_do(capsys):
    def call():
        raise PermissionError(errno.EACCES, "Permission denied", "/w/ledger.db")

    assert _exit_code(call) == 1
    assert capsys.readouterr().err.startswith("kbd: /w/ledger.db: Permission denied; ")


def test_other_encodings_do_not_break_the_answer(world):
    world.ledger().entry("数据库连接必须关闭")
    for command in (["list"], ["list", "--json"], ["show", "数据库"]):
        process = call(world, *command, PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
        _, err = process.communicate()
        assert (process.returncode, err) == (0, b"")


def test_colour_is_for_terminals(world):
    world.ledger().entry(LOCK)
    assert "\x1b[32m" in on_terminal(world, "list")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(world, env):
    world.ledger().entry(LOCK)
    for command in ("list", "status"):
        assert "\x1b" not in on_terminal(world, command, **env)


def test_a_terminal_gets_lines_that_fit(world):
    world.ledger().entry("A title that is " + "very " * 40 + "long")
    lines = on_terminal(world, "list", COLUMNS="80", NO_COLOR="1").splitlines()
    assert [len(line) for line in lines][1] == 80
    assert lines[1].endswith("…")


@pytest.mark.parametrize(
    "command", ["forecast", "report", "context --explain", "search very", "suppressed --type model"]
)
def test_other_screens_fit_a_terminal_of_80_columns_too(world, command):
    world.ledger().entry("A title that is " + "very " * 40 + "long", created="2026-06-10")
    shown = on_terminal(world, *command.split(), COLUMNS="80", NO_COLOR="1")
    assert "A title that is" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_one_pass_says_on_a_terminal_what_it_did_and_nothing_in_a_pipe(world):
    (world.root / "logs" / "agent.log").write_text("Nothing is cited here\n")
    leader, follower = pty.openpty()
    subprocess.run([*KBD, *world.options(), "run", "--once"], stderr=follower)
    os.close(follower)
    assert os.read(leader, 1000).decode().split(",")[0] == "files read: 1"
    os.close(leader)
    again = subprocess.run([*KBD, *world.options(), "run", "--once"], capture_output=True)
    assert (again.stdout, again.stderr) == (b"", b"")


def test_an_interrupt_is_exit_130(world):
    code = (
        "import os, signal, kbd.cli.seeing as s\n"
        "s.known_bases = lambda *a: os.kill(os.getpid(), signal.SIGINT)\n"
        "from kbd.cli.main import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code, *world.options(), "list"], capture_output=True)
    assert result.returncode == 130
    assert b"Traceback" not in result.stderr


def test_completion_knows_commands_and_states(world):
    def complete(words, at):
        env = os.environ | {"_KBD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return subprocess.run(KBD, env=env, capture_output=True, text=True).stdout

    assert "plain,status" in complete("kbd sta", 1)
    assert "plain,dormant" in complete("kbd list --state d", 3)
    assert complete("kbd --st", 1) == "plain,--state-dir\n"
    assert complete("kbd graph rel", 2) == "plain,relate\nplain,related\n"
