"""What git knows of the age of lines: the day on which each line of a file was committed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import UTC, date, datetime

from kbd.errors import FileUnreadable
from kbd.store.gitstate import git_dir

_SECONDS = 60.0
_LINE = re.compile(rb"([0-9a-f]{40,64}) [0-9]+ ([0-9]+)(?: [0-9]+)?")
_UNCOMMITTED = frozenset(b"0")
# Only what is on this disk: a partial clone fetches nothing. Text converters and monitors do not run.
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def blame_days(path: str) -> dict[int, date]:
    """Return 1-based line → UTC day of the commit that brought the line, by its author.

    Lines that moved within the file, or came from another file of the same commit, keep their day; white space does
    not count. Lines not committed yet are left out, and so are those of a shallow clone's oldest commits, whose age
    git does not know. A file outside of git has none.

    Raises:
        FileUnreadable: git is not there, refuses the repository, or takes over a minute.
    """
    real = os.path.realpath(path)
    directory = git_dir(real)
    if directory is None:
        return {}
    git = shutil.which("git")
    if git is None:
        raise FileUnreadable("git is not installed", where=path, hint="install git, or write the dates by hand")
    return _days(_blame(git, real), is_shallow=_is_shallow(directory))


def _is_shallow(directory: str) -> bool:
    """Tell whether history was cut off; a linked work tree has that noted in the repository it belongs to."""
    common = re.sub(r"/worktrees/[^/]+\Z", "", directory)
    return os.path.exists(os.path.join(common, "shallow"))


def _blame(git: str, path: str) -> bytes:
    folder, name = os.path.split(path)
    command = [git, "-c", "core.fsmonitor=false", "blame", "--porcelain", "--no-textconv", "-w", "-M", "-C", "--", name]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command on a file name after `--`
            command,
            cwd=folder,
            env=kept | _ENVIRONMENT,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        what = f"git blame took over {_SECONDS:.0f} s"
        raise FileUnreadable(what, where=path, hint="write the dates by hand") from error
    except OSError as error:
        raise FileUnreadable(f"git blame: {error.strerror}", where=path, hint="write the dates by hand") from error
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode == 0:
        return done.stdout
    if "no such path" in said or "no such ref: HEAD" in said:  # not committed yet
        return b""
    raise FileUnreadable(f"git blame: {said.partition(chr(10))[0]}", where=path, hint="write the dates by hand")


def _days(porcelain: bytes, *, is_shallow: bool) -> dict[int, date]:
    """Read the porcelain format (git-blame(1)): a header for each line, details at a commit's first one."""
    commit_of: dict[int, bytes] = {}
    days: dict[bytes, date] = {}
    unknown: set[bytes] = set()
    commit = b""
    for line in porcelain.split(b"\n"):
        if line.startswith(b"\t"):
            continue
        if header := _LINE.fullmatch(line):
            commit = header[1]
            commit_of[int(header[2])] = commit
        elif line.startswith(b"author-time "):
            days[commit] = datetime.fromtimestamp(int(line.removeprefix(b"author-time ")), UTC).date()
        elif line == b"boundary" and is_shallow:
            unknown.add(commit)
    return {
        number: days[sha]
        for number, sha in commit_of.items()
        if sha in days and sha not in unknown and set(sha) != _UNCOMMITTED
    }
