"""`kbd init`: what it finds, what it shows, and that it writes nothing but what was agreed to."""

import os
import pty
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from kbd.cli.main import main
from kbd.config import load_config

NOW = "2026-06-11"
LESSONS = """\
# Lessons

- [pitfall] **Lock fd leaked on exception path** — close it in finally
- [decision] **SQLite over flat files** — one commit point (2026-06-01)
- **Never retry a POST without a key**
"""


class Machine:
    """A home with an agent's transcripts, and a project in git with knowledge."""

    def __init__(self, root):
        self.root, self.home, self.project = root, root / "home", root / "work/app"
        self.lessons = self.project / "knowledge/lessons.md"
        self.config = self.home / ".config/kbd/config.yaml"
        self.lessons.parent.mkdir(parents=True)
        self.home.mkdir()
        self.lessons.write_text(LESSONS)
        self.git("init", "-q")
        self.commit("2026-01-02")
        transcripts = self.home / ".claude/projects/-w-app"
        transcripts.mkdir(parents=True)
        (transcripts / "0b3ad1c5-59a6-4c55-a4a0-000000000001.jsonl").write_text("{}\n")

    def git(self, *arguments, **env):
        own = {"HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@x", *arguments]
        subprocess.run(command, cwd=self.project, env=os.environ | own | env, check=True, capture_output=True)

    def commit(self, day):
        stamp = f"{day}T12:00:00Z"
        self.git("add", ".")
        self.git("commit", "-qm", "x", GIT_AUTHOR_DATE=stamp, GIT_COMMITTER_DATE=stamp)

    def env(self):
        unset = dict.fromkeys(
            (
                "KBD_CONFIG",
                "KBD_STATE_DIR",
                "XDG_CONFIG_HOME",
                "XDG_DATA_HOME",
                "XDG_STATE_HOME",
                "CLAUDE_CONFIG_DIR",
                "CODEX_HOME",
                "XDG_RUNTIME_DIR",
            )
        )
        return {"HOME": str(self.home)} | unset

    def init(self, *arguments):
        return CliRunner(env=self.env()).invoke(main, ["--now", NOW, "init", *arguments], prog_name="kbd")

    def answer(self, keys):
        """Run init on a terminal and type `keys`; return what it showed."""
        leader, follower = pty.openpty()
        env = {k: v for k, v in (os.environ | self.env()).items() if v is not None} | {"TERM": "xterm"}
        command = [sys.executable, "-m", "kbd", "--now", NOW, "init"]
        with subprocess.Popen(
            command, cwd=self.project, env=env, stdin=follower, stdout=follower, stderr=follower
        ) as process:
            os.close(follower)
            os.write(leader, keys.encode())
            shown = b""
            try:
                while chunk := os.read(leader, 1 << 16):
                    shown += chunk
            except OSError:  # EIO: the other end is closed
                pass
            os.close(leader)
        return process.returncode, shown.decode()

    def files(self):
        """Return path → content of everything outside of git's own."""
        paths = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    machine = Machine(tmp_path)
    monkeypatch.chdir(machine.project)
    monkeypatch.setenv("HOME", str(machine.home))
    return machine


def test_it_shows_agents_knowledge_dates_and_what_fades(machine):
    result = machine.init("--dry-run")
    assert result.exit_code == 0, result.output
    for said in (
        "claude-code   ~/.claude",
        "1 transcript",
        "knowledge/lessons.md: 3 entries",
        "2 of 3 entries",
        "+- **Never retry a POST without a key** (2026-01-02)",
        ".knowledge-graph.yaml",
        "~/.local/state/kbd",
    ):
        assert said in result.stdout, said
    assert "first pass waits a day" in result.stdout
    assert "2026-06-12  1 active, 2 dormant, 0 archived" in result.stdout


@pytest.mark.parametrize("arguments", [("--dry-run",), ()], ids=["dry-run", "nobody to ask"])
def test_nothing_is_written_without_an_answer(machine, arguments):
    before = machine.files()
    result = machine.init(*arguments)
    assert result.exit_code == (0 if arguments else 2)
    assert "Knowledge in" in result.stdout
    assert machine.files() == before
    assert not (machine.home / ".local").exists()


def test_yes_writes_configuration_and_dates(machine):
    result = machine.init("--yes")
    assert result.exit_code == 0, result.output
    config = load_config(machine.config)
    assert config.bases[0].name == "app"
    assert config.bases[0].files == (str(machine.project / "knowledge/*.md"),)
    assert [source.agent for source in config.sources] == ["claude-code"]
    assert machine.lessons.read_text() == LESSONS.replace("in finally\n", "in finally (2026-01-02)\n").replace(
        "a key**\n", "a key** (2026-01-02)\n"
    )


def test_no_dates_leaves_the_knowledge_alone(machine):
    before = machine.lessons.read_bytes()
    assert machine.init("--yes", "--no-dates").exit_code == 0
    assert machine.config.exists()
    assert machine.lessons.read_bytes() == before


@pytest.mark.parametrize(
    ("keys", "config", "dates"),
    [
        ("n\nn\nn\n", False, False),
        ("y\nn\nn\n", True, False),
        ("n\ny\nn\n", False, True),
        ("y\ny\nn\n", True, True),
    ],
)
def test_on_a_terminal_each_is_asked_for(machine, keys, config, dates):
    code, shown = machine.answer(keys)
    assert code == 0, shown
    assert machine.config.exists() is config
    assert ("(2026-01-02)" in machine.lessons.read_text()) is dates


def test_end_of_input_writes_nothing(machine):
    before = machine.files()
    code, _ = machine.answer("\x04")
    assert code == 130
    assert machine.files() == before


def test_configuration_that_is_there_is_shown_as_a_diff_and_kept(machine):
    machine.config.parent.mkdir(parents=True)
    machine.config.write_text("bases: [{name: mine, files: [/x/*.md]}]\n")
    result = machine.init("--yes")
    assert result.exit_code == 2
    assert "-bases: [{name: mine, files: [/x/*.md]}]" in result.stdout
    assert "mine" in machine.config.read_text()
    assert machine.init("--yes", "--force").exit_code == 0
    assert "mine" not in machine.config.read_text()


def test_second_call_finds_everything_done(machine):
    machine.init("--yes")
    before = machine.files()
    result = machine.init("--yes")
    assert result.exit_code == 0
    assert "is there already, just so" in result.stdout
    assert machine.files() == before


def test_named_configuration_is_the_one_written(machine):
    path = machine.root / "elsewhere/kbd.yaml"
    CliRunner(env=machine.env()).invoke(main, ["--config", str(path), "--now", NOW, "init", "--yes"])
    assert load_config(path).bases[0].name == "app"
    assert not machine.config.exists()


def test_without_knowledge_and_agents_a_template_and_a_log_folder_are_made(machine, monkeypatch, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    (machine.home / ".claude").rename(tmp_path / "gone")
    result = machine.init("--yes")
    assert result.exit_code == 0, result.output
    data = machine.home / ".local/share/kbd"
    config = load_config(machine.config)
    assert config.bases[0].files == (str(data / "knowledge/*.md"),)
    assert config.sources[0].path == str(data / "logs")
    assert (data / "knowledge/lessons.md").exists()
    assert (data / "logs").is_dir()


def test_agent_without_transcripts_is_named_and_left_out(machine):
    (machine.home / ".codex/sessions").mkdir(parents=True)
    result = machine.init("--yes")
    assert "codex" in result.stdout
    assert "no transcripts: left out" in result.stdout
    assert [source.agent for source in load_config(machine.config).sources] == ["claude-code"]


def test_file_that_git_is_at_work_on_is_not_dated_and_the_rest_is(machine):
    (machine.project / "MEMORY.md").write_text("- **A thing to remember**: text\n")
    machine.commit("2026-02-02")
    (machine.project / ".git/MERGE_HEAD").write_text("0" * 40)
    result = machine.init("--yes")
    assert result.exit_code == 1
    assert "git is at work (MERGE_HEAD)" in result.stdout
    assert machine.config.exists()
    assert machine.lessons.read_text() == LESSONS


@pytest.mark.parametrize("name", ["we [ird] *", "a: b # c", 'ü "q"', "yes", "~"])
def test_project_of_any_name_gives_a_configuration_that_finds_its_files(machine, monkeypatch, name):
    odd = machine.project.parent / name
    machine.project.rename(odd)
    monkeypatch.chdir(odd)
    result = machine.init("--yes", "--no-dates")
    assert result.exit_code == 0, result.output
    config = load_config(machine.config)
    assert config.bases[0].name == name
    run = CliRunner(env=machine.env()).invoke(main, ["lint", "--json"])
    assert "no file" not in run.output
    assert yaml.safe_load(machine.config.read_text())["bases"][0]["files"]


def test_control_characters_of_names_do_not_reach_the_terminal(machine):
    (machine.project / "knowledge/a\x1b[31mb.md").write_text(LESSONS)
    assert "\x1b" not in machine.init("--dry-run").stdout
