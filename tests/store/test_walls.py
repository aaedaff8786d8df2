"""Files of other users and groups, seen from within the walls of a service: there all of them look like nobody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OTHERS = 54321
REPLACE = """\
import sys
from kbd.store.replacing import replace_file
replace_file(sys.argv[1], b"old\\n", b"new\\n")
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0,
    reason="only root on Linux may give files to others, and make a user namespace everywhere",
)


@pytest.mark.parametrize("owner, group", [(0, OTHERS), (OTHERS, 0), (OTHERS, OTHERS)])
@pytest.mark.parametrize("folder_group", [0, OTHERS + 1])
def test_owner_and_group_stay_where_they_can_be_neither_seen_nor_given(
    tmp_path: Path, owner: int, group: int, folder_group: int
) -> None:
    note = tmp_path / "lessons.md"
    note.write_bytes(b"old\n")
    os.chown(tmp_path, 0, folder_group)
    tmp_path.chmod(0o2777)
    os.chown(note, owner, group)
    note.chmod(0o666)
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-P", "-c", REPLACE, str(note)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    seen = note.stat()
    assert note.read_bytes() == b"new\n"
    assert (seen.st_uid, seen.st_gid, seen.st_mode & 0o7777) == (owner, group, 0o666)
    assert os.listdir(tmp_path) == ["lessons.md"]
