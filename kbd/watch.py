"""File events as hints: they say that something moved and roughly where, the scan finds out what.

Watchdog's observer runs in its own threads. When it cannot watch (limits of inotify, a file system that tells
nothing), or when one of its threads has died, the daemon polls and says so; the code that reads is the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from kbd.engine.watching import Watched

MAX_HINTS = 4096
_QUIET_EVENTS = frozenset(("opened", "closed_no_write"))


class Hints:
    """Paths that moved since the last look; too many become "look everywhere"."""

    def __init__(self) -> None:
        """Begin with nothing to look at."""
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._everywhere = False
        self.wake = threading.Event()

    def note(self, paths: Iterable[str]) -> None:
        """Wake the daemon to look at these paths, besides the knowledge files; a folder stands for all in it."""
        with self._lock:
            self._paths.update(paths)
            self._everywhere = self._everywhere or len(self._paths) > MAX_HINTS
            if self._everywhere:
                self._paths.clear()
            self.wake.set()

    def look_everywhere(self) -> None:
        """Ask for a full scan."""
        with self._lock:
            self._everywhere = True
            self.wake.set()

    def take(self) -> set[str] | None:
        """Return what moved and forget it; None: look everywhere."""
        with self._lock:
            paths = None if self._everywhere else self._paths
            self._paths, self._everywhere = set(), False
            self.wake.clear()
            return paths


class _Handler(FileSystemEventHandler):
    """Turns the events of one folder into hints."""

    def __init__(self, hints: Hints, folder: Watched) -> None:
        self.hints, self.folder = hints, folder

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note an event of interest; a directory that appears may hold files whose events nobody saw."""
        if event.event_type in _QUIET_EVENTS:
            return
        paths = [os.fsdecode(p) for p in (event.src_path, event.dest_path) if p]
        if event.is_directory:
            wanted = paths[-1:] if self.folder.deep and event.event_type in ("created", "moved") else []
        else:
            wanted = [path for path in paths if self.folder.wants(path)]
        if wanted:
            self.hints.note(wanted if self.folder.names_files else ())


class Watch:
    """Watches folders as well as the system allows.

    Attributes:
        hints: what moved.
        degraded: why some folder is polled instead, in words; "" if all are watched.
    """

    def __init__(self, hints: Hints) -> None:
        """Prepare without watching anything."""
        self.hints = hints
        self.degraded = ""
        self._observer: BaseObserver | None = None
        self._folders: tuple[Watched, ...] = ()

    def start(self, folders: Iterable[Watched]) -> None:
        """Watch these folders; those that do not exist are left to the scan."""
        self.stop()
        self._folders = tuple(folders)
        self.degraded = ""
        observer = Observer()
        try:
            for folder in self._folders:
                if os.path.isdir(folder.path):
                    handler = _Handler(self.hints, folder)
                    observer.schedule(handler, os.path.realpath(folder.path), recursive=folder.deep)
            observer.start()
        except OSError as exc:
            self.degraded = _reason(exc)
            self._observer = None
            _quietly_stop(observer)
            return
        self._observer = observer

    def refresh(self) -> None:
        """Watch anew if a thread has died, or a folder has appeared or been made anew."""
        if self._observer is None or not self._is_alive() or self._missed():
            self.start(self._folders)
            self.hints.look_everywhere()

    def _is_alive(self) -> bool:
        observer = self._observer
        return observer is not None and observer.is_alive() and all(e.is_alive() for e in observer.emitters)

    def _missed(self) -> bool:
        """Tell whether a folder that exists is not watched, or another one stands at its place now."""
        watched = {os.fsdecode(e.watch.path) for e in self._observer.emitters} if self._observer else set()
        return any(os.path.isdir(f.path) and os.path.realpath(f.path) not in watched for f in self._folders)

    def stop(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            _quietly_stop(self._observer)
            self._observer = None


def _quietly_stop(observer: BaseObserver) -> None:
    observer.unschedule_all()
    if observer.is_alive():
        observer.stop()
        observer.join(timeout=2)


def _reason(exc: OSError) -> str:
    """Name the limit that was met and the remedy."""
    text = str(exc)
    if "instance limit" in text or exc.errno == 24:
        return "no inotify instance left: polling; raise fs.inotify.max_user_instances (sysctl)"
    if "watch limit" in text or exc.errno == 28:
        return "no inotify watch left: polling; raise fs.inotify.max_user_watches (sysctl)"
    return f"folders cannot be watched ({exc.strerror or text}): polling"
