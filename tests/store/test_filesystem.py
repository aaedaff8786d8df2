"""Mounts, folders and limits, read from files of the kernel's shape."""

import pytest

from kbd.errors import UsageError
from kbd.store.filesystem import (
    count_folders,
    existing,
    free_bytes,
    inotify_limit,
    network_file_system,
    require_local,
)


def mountinfo(tmp_path, *mounts):
    lines = [f"{at} 1 0:{at} / {point} rw - {kind} source rw\n" for at, (point, kind) in enumerate(mounts, 20)]
    path = tmp_path / "mountinfo"
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_network_file_system_is_known_by_its_type(tmp_path, kind):
    mounts = mountinfo(tmp_path, ("/", "ext4"), (str(tmp_path), kind))
    assert network_file_system(str(tmp_path / "not/there/yet"), mounts) == kind


@pytest.mark.parametrize(("kind", "refused"), [("nfs", True), ("ceph", True), ("overlay", False), ("tmpfs", False)])
def test_state_directory_must_be_local(tmp_path, kind, refused):
    mounts = mountinfo(tmp_path, ("/", "ext4"), (str(tmp_path), kind))
    if refused:
        with pytest.raises(UsageError, match=rf"network file system \({kind}\).*--state-dir"):
            require_local(tmp_path / "state", mounts)
    else:
        require_local(tmp_path / "state", mounts)


def test_innermost_mount_decides(tmp_path):
    mounts = mountinfo(tmp_path, ("/", "nfs"), (str(tmp_path), "ext4"), (str(tmp_path) + "2", "nfs"))
    assert network_file_system(str(tmp_path), mounts) is None


def test_later_mount_at_one_place_covers_the_earlier(tmp_path):
    mounts = mountinfo(tmp_path, (str(tmp_path), "ext4"), (str(tmp_path), "nfs"))
    assert network_file_system(str(tmp_path), mounts) == "nfs"


def test_mount_point_with_a_space(tmp_path):
    (tmp_path / "a b").mkdir()
    mounts = mountinfo(tmp_path, ("/", "ext4"), (f"{tmp_path}/a\\040b", "nfs"))
    assert network_file_system(str(tmp_path / "a b"), mounts) == "nfs"


def test_system_without_mountinfo_tells_nothing(tmp_path):
    assert network_file_system("/", tmp_path / "absent") is None


def test_folders_are_counted_once_and_links_are_not_entered(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/loop").symlink_to(tmp_path)
    roots = [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "absent")]
    assert count_folders(roots, 100) == 3
    assert count_folders(roots, 2) == 2


def test_limit_of_inotify_is_read_where_there_is_one(tmp_path):
    (tmp_path / "max_user_watches").write_text("8192\n")
    assert inotify_limit("max_user_watches", tmp_path) == 8192
    assert inotify_limit("max_user_instances", tmp_path) is None


def test_space_of_a_path_to_come_is_that_of_its_folder(tmp_path):
    assert existing(str(tmp_path / "x/y")) == str(tmp_path)
    assert abs(free_bytes(str(tmp_path / "x/y")) - free_bytes(str(tmp_path))) < 1 << 30
