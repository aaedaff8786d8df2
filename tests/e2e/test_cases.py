"""The citation cases: folders of files, laid step by step, with the counters that must come out.

Each case holds `config.yaml`, `why.txt` and numbered steps; a step holds `step.json` (`now`, and what is expected)
and may hold `ops.json` (deletions and renames), `files/` (laid over the root) and `append/` (appended). The real
command line runs in this process.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbd.cli.main import main

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "KBD_CONFIG")
CASES = Path(__file__).parent.parent / "cases"


def lay(source: Path, root: Path, now: str, *, append: bool) -> None:
    noon = datetime.fromisoformat(now + "T12:00:00+00:00").timestamp()
    for path in sorted(source.rglob("*")):
        if path.is_file():
            target = root / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "ab" if append else "wb") as file:
                file.write(path.read_bytes().replace(b"{ROOT}", str(root).encode()))
            os.utime(target, (noon, noon))


def alter(ops: Path, root: Path) -> None:
    for op in json.loads(ops.read_text()) if ops.exists() else []:
        if op[0] == "delete":
            (root / op[1]).unlink()
        else:
            (root / op[2]).parent.mkdir(parents=True, exist_ok=True)
            os.rename(root / op[1], root / op[2])


class Case:
    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        (root / "home").mkdir()
        shutil.copy(folder / "config.yaml", root / "config.yaml")

    def kbd(self, now: str, *args: str) -> tuple[int, str, str]:
        options = ["--config", str(self.root / "config.yaml"), "--state-dir", str(self.root / ".state"), "--now", now]
        result = CliRunner().invoke(main, [*options, *args])
        return result.exit_code, result.stdout, result.stderr

    def steps(self) -> list[Path]:
        return sorted((p for p in self.folder.iterdir() if p.is_dir()), key=lambda p: int(p.name))

    def faults_of(self, step: Path) -> list[str]:
        wanted = json.loads((step / "step.json").read_text(encoding="utf-8"))
        now = wanted["now"]
        alter(step / "ops.json", self.root)
        lay(step / "files", self.root, now, append=False)
        lay(step / "append", self.root, now, append=True)
        before = {name: (self.root / name).read_bytes() for name in wanted.get("same", [])}
        code, _, talk = self.kbd(now, "run", "--once")
        faults = [] if code in (0, 1) else [f"run --once exited {code}: {talk[-300:]}"]
        faults += self.faults_of_entries(now, wanted.get("expect", {}))
        faults += self.faults_of_files(wanted)
        if "reasons" in wanted:
            said = {r["code"] for r in json.loads(self.kbd(now, "status", "--json")[1])["reasons"]}
            missing = [code for code in wanted["reasons"] if code not in said]
            faults += [f"status does not say {code}, only {sorted(said)}" for code in missing]
        return faults + [f"{n} was changed" for n, data in before.items() if (self.root / n).read_bytes() != data]

    def faults_of_entries(self, now: str, expected: dict[str, dict[str, object]]) -> list[str]:
        entries = json.loads(self.kbd(now, "list", "--all", "--json")[1])["entries"]
        first = {e["title"]: e for e in reversed(entries)}
        faults = []
        for title, values in expected.items():
            if title not in first:
                faults.append(f"no entry {title!r}")
                continue
            faults += [f"{title!r} {key} is {first[title].get(key)!r}, not {value!r}"
                       for key, value in values.items() if first[title].get(key) != value]
        return faults

    def faults_of_files(self, wanted: dict[str, dict[str, list[str]]]) -> list[str]:
        faults = []
        for key, there in (("text", True), ("absent", False)):
            for name, parts in wanted.get(key, {}).items():
                path = self.root / name
                body = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
                faults += [f"{name} {'lacks' if there else 'still has'} {part[:80]!r}"
                           for part in parts if (part in body) is not there]
        return faults


@pytest.mark.parametrize("name", sorted(p.name for p in CASES.iterdir() if p.is_dir()))
def test_case_counts_what_the_agent_wrote(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    case = Case(CASES / name, tmp_path.resolve())
    faults = [f"step {step.name}: {fault}" for step in case.steps() for fault in case.faults_of(step)]
    assert not faults, (CASES / name / "why.txt").read_text(encoding="utf-8") + "\n".join(faults)
