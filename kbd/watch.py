"""File events as hints: they say that something moved and roughly where, the scan finds out what.

Watchdog's observer runs in its own threads. What it cannot watch (limits of inotify, a network file system) is polled,
and that is said. What kept events from coming (a thread that ended, a queue that ran over, a folder that was made anew)
is made good by watching anew and looking everywhere, and said as well; the code that reads is the same. A flood of
events is not listened to: all is looked at anyway.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.utils import BaseThread

from kbd.engine.watching import Watched
from kbd.errors import FileUnreadable
from kbd.hints import Hints
from kbd.store.filesystem import network_file_system

STEP_FILES = 1000
"""So many more files and folders passed are progress."""
END_SECONDS = 2.0
_LOST = "file events were lost"
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileAttribEvent,
    FileMovedEvent,
    FileDeletedEvent,
    FileClosedEvent,
]
"""What is asked of the system: not that files were read, which kbd itself does all the time."""


class _Handler(FileSystemEventHandler):
    """Turns the events of one folder into hints."""

    def __init__(self, hints: Hints, folder: Watched, grown: threading.Event) -> None:
        self.hints, self.folder, self.grown = hints, folder, grown

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note an event of interest; a directory that appears may hold files whose events nobody saw."""
        if not event.is_directory and self.hints.pass_over():
            return
        paths = [os.fsdecode(p) for p in (event.src_path, event.dest_path) if p]
        if event.is_directory:
            wanted = paths[-1:] if self.folder.deep and event.event_type in ("created", "moved") else []
            if wanted:
                self.grown.set()
        else:
            wanted = [path for path in paths if self.folder.wants(path)]
        if wanted:
            self.hints.note(wanted if self.folder.names_files else ())


class _Ear(logging.Handler):
    """Hears what watchdog tells by its log alone: that the system's queue ran over and events were lost."""

    def __init__(self, lost: threading.Event, wake: threading.Event) -> None:
        super().__init__(logging.WARNING)
        self.lost, self.wake = lost, wake

    def emit(self, record: logging.LogRecord) -> None:
        self.lost.set()
        self.wake.set()


class Watch:
    """Watches folders as well as the system allows.

    Attributes:
        hints: what moved.
    """

    def __init__(self, hints: Hints, spare: str, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Prepare without watching anything.

        Args:
            hints: where to note what moves.
            spare: a folder of no interest, to try whether a watch is left.
            goes_on: told of progress while folders are looked through; False ends that, and nothing is watched.
        """
        self.hints, self._spare, self._goes_on = hints, spare, goes_on
        self._short = ""
        self._observer: BaseObserver | None = None
        self._folders: tuple[Watched, ...] = ()
        self._polled: dict[str, str] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._threads: list[threading.Thread] = []
        self._grown, self._lost = threading.Event(), threading.Event()
        self._ear = _Ear(self._lost, hints.wake)

    def start(self, folders: Iterable[Watched]) -> None:
        """Watch these folders; those that do not exist are left to the scan, those on a network are polled."""
        self.stop()
        self._folders = tuple(folders)
        self._polled = {f.path: why for f in self._folders if (why := _unwatchable(f.path))}
        self._seen, others = {}, set(threading.enumerate())
        if not all(_walked(f.path, self._goes_on) for f in self._folders if f.deep and f.path not in self._polled):
            return
        observer: BaseObserver | None = None
        try:
            observer = Observer()
            for folder in self._folders:
                if folder.path not in self._polled and (seen := _identity(folder.path)):
                    handler, path = _Handler(self.hints, folder, self._grown), os.path.realpath(folder.path)
                    observer.schedule(handler, path, recursive=folder.deep, event_filter=_EVENTS)
                    self._seen[folder.path] = seen
            observer.start()
        except OSError as exc:
            self._short = _reason(exc)
            if observer is not None:
                _end(observer)
            return
        self._observer = observer
        self._threads = [t for t in threading.enumerate() if isinstance(t, BaseThread) and t not in others]
        logger = logging.getLogger("watchdog")
        logger.addHandler(self._ear)
        logger.propagate = False  # its words are none of the daemon's log
        self._short = self._shortage(observer)

    def rest(self) -> None:
        """Watch nothing while events come in a flood; `refresh` watches anew, and lets all be looked at."""
        if self._observer is not None and self.hints.is_flooded:
            lost = self._lost.is_set()
            self.stop()
            if lost:  # it is told when all is watched again
                self._lost.set()

    def refresh(self) -> str:
        """Watch anew, and let all be looked at, where events did not or will not come.

        Returns what kept them from coming and was mended, in words; "" if nothing did.
        """
        observer = self._observer
        what = self._trouble() if observer is not None else _LOST if self._lost.is_set() else ""
        if observer is not None and what is None:
            if not self._grown.is_set() or (shortage := self._shortage(observer)) == self._short:
                return ""
            self._short = shortage
        if observer is None or what is not None or not self._short:
            self.start(self._folders)
        self.hints.look_everywhere()
        return what or ""

    def _trouble(self) -> str | None:
        """Return why to watch anew, "" where that is nothing to tell of; None: all is well."""
        if not all(thread.is_alive() for thread in self._threads):
            return "a thread of the watcher ended"
        if self._lost.is_set():
            return _LOST
        for folder in self._folders:
            seen = None if folder.path in self._polled else _identity(folder.path)
            if seen and seen != self._seen.get(folder.path):
                return "a watched folder was made anew" if folder.path in self._seen else ""
        return None

    @property
    def degraded(self) -> str:
        """Why some folder is polled instead, in words; "" if all are watched."""
        return "; ".join(dict.fromkeys(filter(None, (self._short, *self._polled.values()))))

    def _shortage(self, observer: BaseObserver) -> str:
        """Try one more watch, and return why there is none; of folders below a root watchdog does not tell."""
        self._grown.clear()
        try:
            observer.unschedule(observer.schedule(FileSystemEventHandler(), self._spare))
        except OSError as exc:
            self._grown.set()  # so that it is tried again
            return _reason(exc)
        return ""

    def stop(self) -> None:
        """Stop watching."""
        logging.getLogger("watchdog").removeHandler(self._ear)
        if self._observer is not None:
            _end(self._observer)
            self._observer = None
        self._threads = []
        self._lost.clear()
        self._grown.clear()


def _end(observer: BaseObserver) -> None:
    """Stop an observer, one that never started too: it holds an inotify instance.

    It waits for its threads, and one that ended amid its work may have left a lock behind.
    """
    ending = threading.Thread(target=observer.stop, daemon=True)
    ending.start()
    ending.join(END_SECONDS)
    if observer.is_alive():
        observer.join(END_SECONDS)


def _walked(path: str, goes_on: Callable[[], bool]) -> bool:
    """Look through all folders below one; False if that was ended.

    Watchdog does so in one go, which takes minutes where a disk must be asked; then it finds them in memory.
    """
    waiting, passed = [path], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    passed += 1
                    if passed % STEP_FILES == 0 and not goes_on():
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:  # gone, or closed to us: the scan says what is wrong
            continue
    return True


def _identity(path: str) -> tuple[int, int] | None:
    """Return (device, inode) of a folder, None if there is none."""
    try:
        seen = os.stat(path)
    except OSError:  # the scan says what is wrong with it
        return None
    return (seen.st_dev, seen.st_ino) if stat.S_ISDIR(seen.st_mode) else None


def _unwatchable(path: str) -> str:
    """Return why the system tells nothing of what changes in a folder; "" if it does."""
    try:
        kind = network_file_system(path)
    except FileUnreadable as exc:
        return str(exc)
    return f"{path} lies on a network file system ({kind})" if kind else ""


def _reason(exc: OSError) -> str:
    """Name the limit that was met and the remedy."""
    text = str(exc)
    if "instance limit" in text or exc.errno == 24:
        return "no inotify instance left; raise fs.inotify.max_user_instances (sysctl)"
    if "watch limit" in text or exc.errno == 28:
        return "no inotify watch left; raise fs.inotify.max_user_watches (sysctl)"
    return f"folders cannot be watched ({exc.strerror or text})"
