"""Which files of a root are found, and what is told of those that cannot be."""

import os
import socket
import time

import pytest

from kbd.core.model import Problem
from kbd.store.scan import Found, excluded, is_due, walk
from kbd.store.statx import birth_time_ns

HOUR, DAY = 3600, 86_400
NOW = 1_781_000_000.0


def jsonl(relpath: str) -> str | None:
    return "transcript" if relpath.endswith(".jsonl") else None


def scan(root, keep=jsonl, **options):
    items = walk(str(root), keep, **options)
    assert items is not None
    items = list(items)
    found = {i.relpath: i for i in items if isinstance(i, Found)}
    return found, [i for i in items if isinstance(i, Problem)]


def lay(root, *relpaths):
    for relpath in relpaths:
        path = root / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_files_that_keep_wants_are_found_at_any_depth_with_their_state(root):
    lay(root, "a.jsonl", "x/y/z/b.jsonl", "x/c.txt", ".hidden/d.jsonl")
    found, problems = scan(root)
    seen = os.stat(root / "a.jsonl")
    assert (set(found), problems) == ({"a.jsonl", "x/y/z/b.jsonl", ".hidden/d.jsonl"}, [])
    assert found["a.jsonl"] == Found(
        str(root / "a.jsonl"), "a.jsonl", seen.st_dev, seen.st_ino, 3, seen.st_mtime_ns, False, "transcript",
        seen.st_ctime_ns,
    )


def test_missing_root_is_not_an_empty_one(root):
    assert walk(str(root / "gone"), jsonl) is None
    assert scan(root) == ({}, [])


def test_root_below_a_file_or_behind_a_dead_link_is_missing(root):
    lay(root, "a.jsonl")
    (root / "dead").symlink_to(root / "gone")
    assert walk(str(root / "a.jsonl" / "x"), jsonl) is None
    assert walk(str(root / "dead"), jsonl) is None


def test_root_that_goes_away_during_the_scan_is_told(root):
    items = walk(str(root), jsonl)
    root.rmdir()
    assert [i.code for i in items] == ["source_unreadable"]


def test_root_may_be_a_link_or_a_single_file(root, tmp_path):
    lay(root, "a.jsonl")
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "one.jsonl").symlink_to(root / "a.jsonl")
    assert scan(tmp_path / "link")[0]["a.jsonl"].path == str(root / "a.jsonl")
    assert scan(root / "a.jsonl")[0]["a.jsonl"].linked is False
    assert scan(tmp_path / "one.jsonl")[0]["one.jsonl"].path == str(root / "a.jsonl")
    assert scan(root / "a.jsonl", lambda relpath: None) == ({}, [])


def test_root_that_is_a_fifo_is_told(root):
    os.mkfifo(root / "pipe")
    assert [p.code for p in scan(root / "pipe")[1]] == ["source_unreadable"]


def test_no_fifo_socket_or_link_to_one_is_found(root):
    os.mkfifo(root / "f.jsonl")
    (root / "l.jsonl").symlink_to(root / "f.jsonl")
    (root / "d.jsonl").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "s.jsonl"))
        assert scan(root) == ({}, [])


def test_linked_file_is_found_only_if_its_target_lies_inside_the_root(root, tmp_path):
    lay(root, "real.txt")
    lay(tmp_path, "outside.jsonl", "root-twin/a.jsonl")
    (root / "in.jsonl").symlink_to("real.txt")
    (root / "out.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (root / "twin.jsonl").symlink_to("../root-twin/a.jsonl")
    (root / "up.jsonl").symlink_to(root / ".." / "outside.jsonl")
    found, problems = scan(root)
    assert (list(found), problems) == (["in.jsonl"], [])
    assert (found["in.jsonl"].path, found["in.jsonl"].linked) == (str(root / "real.txt"), True)


def test_linked_folders_are_not_entered_and_loops_end(root, tmp_path):
    lay(root, "a/x.jsonl")
    lay(tmp_path, "away/y.jsonl")
    (root / "a" / "loop").symlink_to(root)
    (root / "away").symlink_to(tmp_path / "away")
    (root / "self.jsonl").symlink_to("self.jsonl")
    assert list(scan(root)[0]) == ["a/x.jsonl"]


def test_dead_links_hide_no_other_file(root):
    lay(root, *(f"{n}.jsonl" for n in range(20)))
    for n in range(20):
        (root / f"dead{n}.jsonl").symlink_to(root / f"{n}.jsonl" / "x")
        (root / f"gone{n}.jsonl").symlink_to(root / "gone")
    found, problems = scan(root)
    assert (len(found), problems) == (20, [])


def test_excluded_folder_is_not_entered_nor_reached_by_a_link(root):
    lay(root, "keep/a.jsonl", "secret/b.jsonl", "x/tmp/c.jsonl")
    (root / "l.jsonl").symlink_to("secret/b.jsonl")
    assert list(scan(root, exclude=["secret", "x/tmp/**"])[0]) == ["keep/a.jsonl"]
    assert list(scan(root, exclude=[str(root / "secret"), "tmp"])[0]) == ["keep/a.jsonl"]
    assert scan(root / "keep" / "a.jsonl", exclude=["*.jsonl"]) == ({}, [])


@pytest.mark.parametrize(
    ("glob", "relpath", "covered"),
    [
        ("memory", "a/memory/b.jsonl", True),
        ("*.tmp*", "a/b.tmp-1", True),
        ("*.tmp*", "a/b.jsonl", False),
        ("a/*.jsonl", "a/b.jsonl", True),
        ("a/*.jsonl", "a/b/c.jsonl", False),
        ("**/memory/**", "memory/x", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z/inside", True),
        ("a/[bc]?/", "a/b1/x", True),
        ("a/[!b]*", "a/b1", False),
        ("/src/a/*", "a/b", True),
        ("/src/b", "a/b", False),
        ("src", "a/b", False),
        ("**", "a", True),
    ],
)
def test_glob_covers_names_as_a_reader_of_globs_expects(glob, relpath, covered):
    assert excluded([glob])(relpath, f"/src/{relpath}") is covered


def test_more_files_than_allowed_are_told(root):
    lay(root, *(f"{n}.jsonl" for n in range(5)))
    found, problems = scan(root, max_files=4)
    assert (len(found), [p.code for p in problems]) == (4, ["too_many_files"])
    assert scan(root, max_files=5)[1] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folder_without_permission_is_told_and_the_rest_is_found(root):
    lay(root, "a/x.jsonl", "b/y.jsonl", "c/z.jsonl", "c/w.jsonl")
    (root / "a").chmod(0)
    (root / "c").chmod(0o400)
    try:
        found, problems = scan(root)
    finally:
        (root / "a").chmod(0o700)
        (root / "c").chmod(0o700)
    assert list(found) == ["b/y.jsonl"]
    assert sorted(p.code for p in problems) == ["file_unreadable", "folder_unreadable"]


def test_folder_whose_path_is_too_long_is_told_and_the_rest_is_found(root):
    lay(root, "a.jsonl")
    here = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found, problems = scan(root)
    assert (list(found), [p.code for p in problems]) == (["a.jsonl"], ["folder_unreadable"])


def test_name_that_is_no_utf_8_is_found_and_opens(root):
    with open(os.fsencode(root) + b"/\xff.jsonl", "wb"):
        found = scan(root)[0]
    assert [os.path.exists(f.path) for f in found.values()] == [True]


@pytest.mark.parametrize(
    ("age", "checked", "due"),
    [
        (0, None, True),
        (100 * DAY, None, True),
        (6 * DAY, 1, True),
        (8 * DAY, HOUR - 1, False),
        (8 * DAY, HOUR, True),
        (-DAY, 1, True),
        (8 * DAY, -10, True),
    ],
)
def test_moved_files_are_due_each_scan_and_others_hourly(age, checked, due):
    checked_at = None if checked is None else NOW - checked
    assert is_due(int((NOW - age) * 1e9), checked_at, NOW) is due


def test_birth_time_stays_when_the_file_is_changed(root):
    lay(root, "a.jsonl")
    born = birth_time_ns(root / "a.jsonl")
    if born is None:
        pytest.skip("this file system keeps no birth times")
    os.utime(root / "a.jsonl", (0, 0))
    assert birth_time_ns(root / "a.jsonl") == born
    assert abs(born / 1e9 - time.time()) < DAY


def test_birth_time_of_an_absent_file_is_unknown(root):
    assert birth_time_ns(root / "gone") is None
