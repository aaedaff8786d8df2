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
from kbd.core.schema import Schema
from kbd.engine.frame import Frame
from kbd.engine.watching import Watched
from kbd.errors import FileUnreadable, FileUnwritable, LedgerDamaged, LockTimeout
from kbd.service.graph.checking import validate_appended
from kbd.service.graph.reading import Place, opened
from kbd.service.graph.schemas import Faulty, load_schema
from kbd.store.eventlog import START, Position
from kbd.store.ledger import lessons
from kbd.store.relations_cache import Related

SMALL_BYTES = 4 << 20
"""Up to this size a log is validated whole when it changes; of a larger one only what is new since the start."""
SHOWN = 100


@dataclass(slots=True)
class _Seen:
    stamp: tuple[object, ...]
    end: Position
    problems: list[Problem]


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
            if seen is None or seen.stamp != stamp:
                seen = self.seen[base.graph.log] = self._validate(base, base.graph, stamp, seen)
            yield from seen.problems

    def _validate(
        self,
        base: BaseConfig,
        graph: GraphConfig,
        stamp: tuple[object, ...],
        before: _Seen | None,
    ) -> _Seen:
        place = Place(graph.log, graph.schema, self.frame.state_dir)
        end = START if before is None else before.end
        try:
            schema = load_schema(graph.schema)
            since = START
            if os.path.getsize(graph.log) > SMALL_BYTES:
                since = _end(place, schema) if before is None else before.end
            found = validate_appended(place, schema, since, lambda: self._knowledge(base))
        except Faulty as exc:
            return _Seen(stamp, end, [replace(p, where=f"{graph.schema}: {p.where}") for p in exc.problems[:SHOWN]])
        except (LedgerDamaged, FileUnreadable, FileUnwritable, LockTimeout) as exc:
            return _Seen(
                stamp, end, [Problem("graph_unreadable", graph.log, exc.what, exc.hint or "`kbd graph validate`")]
            )
        carried = before.problems if since != START and before is not None else []
        folder = os.path.dirname(graph.log)
        fresh = [replace(p, where=os.path.join(folder, p.where)) for p in found.problems]
        return _Seen(stamp, found.end, [*carried, *fresh][-SHOWN:])

    def _knowledge(self, base: BaseConfig) -> Knowledge:
        ids = {spec.name: spec.id for _, spec in self.frame.bases()}
        entries = lessons.entries_of(self.frame.ledger.db, ids[base.name])
        return Knowledge(entries, list(self.relations_of(base.relations).relations or ()))


def _end(place: Place, schema: Schema) -> Position:
    with opened(place, schema) as graph:
        return graph.end


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
