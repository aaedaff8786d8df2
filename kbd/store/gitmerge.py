"""Git's own text merge of three versions of a file, with its conflict markers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from kbd.errors import FileUnreadable, Refused

_SECONDS = 60.0
_MOST_CONFLICTS = 127


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged text, and in how many places it conflicts."""

    data: bytes
    conflicts: int


def merge_texts(ours: bytes, common: bytes, theirs: bytes, marker_size: int = 7) -> Merge:
    """Merge by `git merge-file`.

    Raises:
        FileUnreadable: git is not there, or takes over a minute.
        Refused: git merges no such content.
    """
    git = shutil.which("git")
    if git is None:
        raise FileUnreadable("git is not installed", where="merge-driver", hint="install git")
    labels = [part for label in ("ours", "base", "theirs") for part in ("-L", label)]
    with tempfile.TemporaryDirectory(prefix="kbd-merge-") as folder:
        paths = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, (ours, common, theirs), strict=True):
            with open(path, "wb") as file:
                file.write(data)
        command = [git, "merge-file", "-p", "-q", f"--marker-size={marker_size}", *labels, *paths]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words on own files
        except (subprocess.TimeoutExpired, OSError) as error:
            raise FileUnreadable(f"git merge-file: {error}", where="merge-driver", hint="merge by hand") from error
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        what = f"git merge-file: {done.stderr.decode('utf-8', 'replace').strip()}"
        raise Refused(what, where="merge-driver", hint="merge by hand")
    return Merge(done.stdout, done.returncode)
