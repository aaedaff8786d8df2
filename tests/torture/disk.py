"""A model of a disk under power loss: what of the recorded calls is sure to be there.

Content is sure once its file was synced, a name once its directory was. What was not synced may be there or not, so
two disks are made at each moment: one that kept no unsynced thing, and one that kept all names, but no unsynced
content. A file that was never synced is empty on that one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = (
    "open,openat,close,lseek,write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,"
    "unlink,unlinkat,dup,dup2,fcntl,pwritev,writev,copy_file_range,sendfile,truncate"
)
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_LINE = re.compile(r"(?P<name>\w+)\((?P<args>.*)\) += (?P<result>-?\d+)(?P<more>.*)", re.DOTALL)
_PLACE = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>")
_UNMODELLED = frozenset({"pwritev", "writev", "copy_file_range", "sendfile", "truncate"})

Image = dict[str, bytes]
"""Content by path."""


@dataclass(eq=False)
class Inode:
    now: bytearray
    sure: bytes


@dataclass
class _Open:
    inode: Inode | None
    path: str
    appends: bool
    offset: int = 0


@dataclass
class Disk:
    """Files below `roots`, replayed call by call."""

    roots: tuple[str, ...]
    names: dict[str, Inode] = field(default_factory=dict)
    sure_names: dict[str, Inode] = field(default_factory=dict)
    files: dict[int, _Open] = field(default_factory=dict)

    @classmethod
    def of(cls, *roots: Path) -> Disk:
        """Take up what lies there now; all of it is sure."""
        disk = cls(tuple(str(root) for root in roots))
        for root in roots:
            for path in (p for p in root.rglob("*") if p.is_file()):
                data = path.read_bytes()
                disk.names[str(path)] = Inode(bytearray(data), data)
        disk.sure_names = dict(disk.names)
        return disk

    def replay(self, trace: Path) -> Iterator[tuple[str, Image]]:
        """Yield, after each call that moves what is sure or a name, the two disks and what was called."""
        for line in trace.read_text(encoding="ascii").splitlines():
            found = _LINE.match(line)
            if found is None or found["result"].startswith("-"):
                continue
            assert found["name"] not in _UNMODELLED, line[:200]
            if self._apply(found["name"], found["args"], int(found["result"])):
                what = f"{found['name']}({_readable(found['args'])[:160]})"
                yield f"{what}, nothing unsynced", {p: inode.sure for p, inode in self.sure_names.items()}
                yield f"{what}, names alone", {p: inode.sure for p, inode in self.names.items()}

    def _apply(self, name: str, args: str, result: int) -> bool:
        """Carry out a call; return whether a disk may look different now."""
        if name in ("open", "openat"):
            return self._open(name, args, result)
        if name.startswith(("rename", "link", "unlink")):
            return self._name(name, args)
        fd = int(args.partition("<")[0])
        if name == "close":
            self.files.pop(fd, None)
        elif name in ("fsync", "fdatasync"):
            return self._sync(fd)
        elif (file := self.files.get(fd)) is not None and file.inode is not None:
            self._content(name, args, file, file.inode, result)
        return False

    def _open(self, name: str, args: str, fd: int) -> bool:
        path = self._paths(args)[0]
        inode = self.names.get(path)
        made = inode is None and "O_CREAT" in args and path.startswith(self.roots)
        if made:
            inode = self.names[path] = Inode(bytearray(), b"")
        if inode is not None and "O_TRUNC" in args:
            inode.now.clear()
        self.files[fd] = _Open(inode, path, "O_APPEND" in args)
        return made

    def _content(self, name: str, args: str, file: _Open, inode: Inode, result: int) -> None:
        if name == "lseek":
            file.offset = result
        elif name == "ftruncate":
            size = int(args.rpartition(",")[2])
            inode.now[:] = inode.now[:size].ljust(size, b"\0")
        elif name in ("write", "pwrite64"):
            found = _STRING.search(args)
            assert found is not None and not found[2], "a string was cut"
            data = _bytes(found[1])[:result]
            at = int(args.rpartition(",")[2]) if name == "pwrite64" else file.offset
            at = len(inode.now) if file.appends else at
            inode.now.extend(bytes(max(at - len(inode.now), 0)))
            inode.now[at : at + len(data)] = data
            if name == "write":
                file.offset = at + len(data)

    def _sync(self, fd: int) -> bool:
        file = self.files.get(fd)
        if file is None:
            return False
        if file.inode is not None:
            file.inode.sure = bytes(file.inode.now)
            return True
        inside = {p: inode for p, inode in self.names.items() if os.path.dirname(p) == file.path}
        kept = {p: inode for p, inode in self.sure_names.items() if os.path.dirname(p) != file.path}
        self.sure_names = kept | inside
        return file.path.startswith(self.roots)

    def _name(self, name: str, args: str) -> bool:
        paths = self._paths(args)
        if not any(path.startswith(self.roots) for path in paths):
            return False
        if name.startswith("unlink"):
            self.names.pop(paths[0], None)
        elif name.startswith("link"):
            self.names[paths[1]] = self.names[paths[0]]
        elif "RENAME_EXCHANGE" in args:
            one, other = paths
            self.names[one], self.names[other] = self.names[other], self.names[one]
        else:
            self.names[paths[1]] = self.names.pop(paths[0])
        return True

    def _paths(self, args: str) -> list[str]:
        """Return the paths that a call names, each joined to the folder it is relative to."""
        folders = [os.fsdecode(_bytes(text)) for text in _PLACE.findall(args)] or [""]
        names = [os.fsdecode(_bytes(text)) for text, _ in _STRING.findall(args)]
        return [os.path.normpath(os.path.join(folders[min(i, len(folders) - 1)], name)) for i, name in enumerate(names)]


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()


def _readable(args: str) -> str:
    return re.sub(r"(?:\\x[0-9a-f]{2})+", lambda found: os.fsdecode(_bytes(found[0])), args)
