"""A project has two names, its own and that of a link to it: the config knows one, the agent the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attack.lab import CONFIG, TITLE, Lab


@pytest.mark.parametrize("configured", ["real", "link"])
@pytest.mark.parametrize("told", ["real", "real/src", "link", "link/src"])
def test_session_in_a_project_counts_under_either_name(configured: str, told: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, CONFIG.replace('"kb/*.md"]', f'"kb/*.md"], projects: [{configured}]'))
    (tmp_path / "real" / "src").mkdir(parents=True)
    os.symlink(tmp_path / "real", tmp_path / "link")
    lab.note()
    lab.say("s1", f"as in {TITLE} we do it", cwd=str(tmp_path / told))
    lab.say("s2", f"as in {TITLE} we do it", cwd=str(tmp_path / "really"))
    lab.run()
    assert lab.credits() == {("s1", "2026-06-11")}


@pytest.mark.parametrize("configured", ["real", "link", "link/*", "real/s*"])
@pytest.mark.parametrize("told", ["real/src", "link/src"])
def test_folder_that_is_never_read_is_left_out_under_either_name(configured: str, told: str, tmp_path: Path) -> None:
    excluded = f"agent: claude-code, root: claude, exclude: ['{tmp_path / configured}']"
    lab = Lab(tmp_path, CONFIG.replace("agent: claude-code, root: claude", excluded))
    (tmp_path / "real" / "src").mkdir(parents=True)
    os.symlink(tmp_path / "real", tmp_path / "link")
    lab.note()
    lab.say("s1", f"as in {TITLE} we do it", cwd=str(tmp_path / told))
    lab.say("s2", f"as in {TITLE} we do it", cwd="/w")
    lab.run()
    assert lab.credits() == {("s2", "2026-06-11")}
