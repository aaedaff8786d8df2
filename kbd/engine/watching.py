"""Which folders are watched, which events in them are worth a pass, and how often all is looked at without any.

A folder of lessons often is a whole repository, or a home: what builds, checkouts and kbd itself write there is nothing
to wake up for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kbd.config import BaseConfig
from kbd.config.paths import fixed_folder
from kbd.engine.frame import Frame
from kbd.service.ingest import SourceSpec

SCAN_SHARE = 0.0005
"""Scans of all files may take this part of a core while events flow (SPEC 10)."""
SCAN_SECONDS_MOST = 3600.0
"""Even so all are looked at so often, however many there are: events may be lost without a word."""


def seconds_between_scans(every_seconds: float, scan_seconds: float, *, told: bool) -> float:
    """Return how long after a scan of all files the next one is due.

    Args:
        every_seconds: as configured; what changes is found within this time where it is not told.
        scan_seconds: processor time of the last scan.
        told: events flow, so that scans only find what they missed.
    """
    stretched = min(scan_seconds / SCAN_SHARE, SCAN_SECONDS_MOST) if told else 0.0
    return max(float(every_seconds), stretched)


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder to watch.

    Attributes:
        path: the folder.
        deep: what lies in the folders below is of interest, too.
        names_files: events name transcripts that the next pass looks into; else they only wake it, as each pass looks
            at all knowledge files.
        wants: tells by its absolute path whether a file is of interest.
    """

    path: str
    deep: bool
    names_files: bool
    wants: Callable[[str], bool]


def watched_folders(frame: Frame) -> list[Watched]:
    """Return the roots of sources and the folders of knowledge files, each once for each purpose."""
    found = [_of_source(spec) for _, spec in frame.sources()]
    found += [folder for base in frame.config.bases for folder in _of_base(base)]
    return list({(one.path, one.deep, one.names_files): one for one in found}.values())


def _of_source(spec: SourceSpec) -> Watched:
    root = os.path.realpath(spec.root)

    def wants(path: str) -> bool:
        return spec.format.file_kind(os.path.relpath(path.removesuffix("-wal"), root)) is not None

    return Watched(spec.root, deep=True, names_files=True, wants=wants)


def _of_base(base: BaseConfig) -> Iterator[Watched]:
    endings = {os.path.splitext(pattern)[1].lower() for pattern in base.files} | {".yaml"}

    def wants(path: str) -> bool:
        ending = os.path.splitext(path)[1].lower()
        return ending in endings and not os.path.basename(path).startswith(".kbd-") or "" in endings

    for pattern in base.files:
        folder = fixed_folder(pattern)
        yield Watched(folder, deep=os.path.dirname(pattern) != folder, names_files=False, wants=wants)
    yield Watched(os.path.dirname(base.relations), deep=False, names_files=False, wants=wants)
