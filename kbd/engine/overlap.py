"""Which source a file belongs to that several reach: a folder named twice, through a link or mount, or inside another.

The first in the configuration that takes it has it, so that a source added later changes nothing that was counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kbd.config import SourceConfig
from kbd.service.ingest import SourceSpec
from kbd.sources.contract import SourceFormat
from kbd.store.scan import excluded


@dataclass(frozen=True, slots=True)
class Claim:
    """What an earlier source takes of another one's folder.

    Attributes:
        root: its own root, as a path within or above that folder.
        format: its format; is_excluded: what it leaves out, by name inside its root and absolute path.
    """

    root: str
    format: SourceFormat
    is_excluded: Callable[[str, str], bool]

    def takes(self, path: str) -> bool:
        """Tell whether the earlier source reads the file at this real path."""
        if path != self.root and not path.startswith(self.root.rstrip("/") + "/"):
            return False
        relpath = os.path.basename(path) if path == self.root else os.path.relpath(path, self.root)
        return self.format.file_kind(relpath) is not None and not self.is_excluded(relpath, path)


def earlier_claims(sources: Sequence[tuple[SourceConfig, SourceSpec]]) -> dict[int, list[Claim]]:
    """Return by source id what sources before it, of the same agent, take of its folder."""
    claims: dict[int, list[Claim]] = {}
    for at, (_, spec) in enumerate(sources):
        folder = os.path.realpath(spec.root)
        before = ((config, earlier) for config, earlier in sources[:at] if earlier.format.agent == spec.format.agent)
        found = ((_seen_from(folder, earlier.root), config, earlier) for config, earlier in before)
        claims[spec.id] = [Claim(root, e.format, excluded(config.exclude)) for root, config, e in found if root]
    return claims


def _seen_from(folder: str, root: str) -> str | None:
    """Return another root as a path that files below a folder begin with; None if they share nothing."""
    real = os.path.realpath(root)
    above = next((place for place in _upwards(folder) if _is_one(place, real)), None)
    return above or (real if real.startswith(folder.rstrip("/") + "/") else None)


def _upwards(path: str) -> Iterator[str]:
    yield path
    while (parent := os.path.dirname(path)) != path:
        yield (path := parent)


def _is_one(path: str, other: str) -> bool:
    """Tell whether two paths are one folder or file: by name, or as a mount of the same."""
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:  # one of them is not there, or may not be looked at
        return False
