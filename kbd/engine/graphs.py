"""Typed graphs beside the bases: what agents append to their logs is validated, and what violates the schema is said.

A violation never stops anything: the log is the agents' own, kbd only shows which line of it is wrong, and whose it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kbd.config import BaseConfig, GraphConfig
from kbd.core.bridge import Knowledge
from kbd.core.model import Problem
from kbd.engine.frame import Frame
from kbd.engine.watching import Watched
from kbd.errors import FileUnreadable, FileUnwritable, LedgerDamaged, LockTimeout
from kbd.service.graph.checking import judge_appended
from kbd.service.graph.reading import Place
from kbd.service.graph.schemas import Faulty, load_schema
from kbd.store.ledger import lessons
from kbd.store.relations_cache import Related

SHOWN = 100


@dataclass(slots=True)
class _Seen:
    stamp: tuple[object, ...]
    problems: list[Problem]
    is_whole: bool = True


@dataclass(slots=True)
class GraphWatch:
    """Validates the logs of a process's graphs when they change.

    Attributes:
        frame: ledger and configuration.
        relations_of: reads a relations file.
        seen: by log, how it was when last validated.
    """

    frame: Frame
    relations_of: Callable[[str], Related]
    seen: dict[str, _Seen] = field(default_factory=dict)

    def check(self) -> Iterator[Problem]:
        """Yield what is wrong in the logs of all bases; nothing is read of a log that did not change."""
        for base in self.frame.config.bases:
            if base.graph is None or not os.path.exists(base.graph.log):
                continue
            stamp = (*_stamp(base.graph.log), *_stamp(base.graph.schema))
            seen = self.seen.get(base.graph.log)
            if seen is None or seen.stamp != stamp or not seen.is_whole:
                seen = self.seen[base.graph.log] = self._validate(base, base.graph, stamp)
            yield from seen.problems

    def _validate(self, base: BaseConfig, graph: GraphConfig, stamp: tuple[object, ...]) -> _Seen:
        place = Place(graph.log, graph.schema, self.frame.state_dir)
        try:
            schema, schema_id = load_schema(graph.schema), repr(_stamp(graph.schema))
            judged = judge_appended(place, schema, schema_id, lambda: self._knowledge(base))
        except Faulty as exc:
            return _Seen(stamp, [replace(p, where=f"{graph.schema}: {p.where}") for p in exc.problems[:SHOWN]])
        except (LedgerDamaged, FileUnreadable, FileUnwritable, LockTimeout) as exc:
            return _Seen(stamp, [Problem("graph_unreadable", graph.log, exc.what, exc.hint or "`kbd graph validate`")])
        folder = os.path.dirname(graph.log)
        found = [replace(p, where=os.path.join(folder, p.where)) for p in judged.problems]
        return _Seen(stamp, found[-SHOWN:], judged.is_whole)

    def _knowledge(self, base: BaseConfig) -> Knowledge:
        ids = {spec.name: spec.id for _, spec in self.frame.bases()}
        entries = lessons.entries_of(self.frame.ledger.db, ids[base.name])
        return Knowledge(entries, list(self.relations_of(base.relations).relations or ()))


def _stamp(path: str) -> tuple[object, ...]:
    try:
        seen = os.stat(path)
    except OSError:
        return (None,)
    return (seen.st_ino, seen.st_size, seen.st_mtime_ns)


def watched_logs(frame: Frame) -> Iterator[Watched]:
    """Yield the folders of the graphs' logs and schemas."""
    for base in frame.config.bases:
        if base.graph is not None:
            paths = frozenset(os.path.realpath(p) for p in (base.graph.log, base.graph.schema))
            for folder in sorted({os.path.dirname(p) for p in paths}):
                yield Watched(folder, deep=False, names_files=False, wants=paths.__contains__)
