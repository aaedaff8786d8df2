"""What fuzzing begins with: every agent's files as the cases and the form writers hold them."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbd.sources.contract import DatabaseFormat, FileKind, SourceFormat
from kbd.sources.registry import formats
from kbd.store import batches
from kbd.store.scan import Found
from kbd.store.tail import begin
from tests.forms.disk import Disk, interleaved
from tests.forms.history import TODAY, histories
from tests.forms.writers import WRITERS, Writer

CASES = Path(__file__).parents[1] / "cases"
SEED_BYTES = 64 << 10
"""Of longer seeds the beginning is taken: what is slow to mutate finds little."""
HISTORIES = 4


@dataclass(frozen=True, slots=True)
class Seed:
    """A file of a source: its path from the root, and its records, one a line (of a database: one a row)."""

    relpath: str
    data: bytes

    @property
    def packed(self) -> bytes:
        """The seed as one run of bytes, for engines that mutate those."""
        return self.relpath.encode() + b"\0" + self.data

    @classmethod
    def unpacked(cls, packed: bytes) -> Seed:
        relpath, _, data = packed.partition(b"\0")
        return cls(relpath.decode(errors="replace"), data)


@functools.cache
def seeds(agent: str) -> tuple[Seed, ...]:
    """Return the seeds of a format, the same in every run."""
    one = formats()[agent]
    found = dict.fromkeys(_of_cases(one))
    for writer in WRITERS.values():
        if writer.agent == agent:
            found |= dict.fromkeys(_of_writer(one, writer()))
    return tuple(found)


def _of_cases(one: SourceFormat) -> Iterator[Seed]:
    home = "/home/nobody"
    for case in sorted(CASES.glob("*/config.yaml")):
        for source in yaml.safe_load(case.read_text(encoding="utf-8")).get("sources", ()):
            if one.agent not in (source.get("agent"), source.get("format")):
                continue
            given_root = source.get("root") or source.get("path")
            roots = [given_root] if given_root else [r.replace(home, "home") for r in one.default_roots({}, home)]
            for step in sorted(p for p in case.parent.iterdir() if p.is_dir()):
                for root in roots:
                    for laid in ("files", "append"):
                        yield from _of_folder(one, step / laid / root)


def _of_writer(one: SourceFormat, writer: Writer) -> list[Seed]:
    found: list[Seed] = []

    @settings(max_examples=HISTORIES, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        history = data.draw(histories(writer.kinds, deep=writer.deep))
        rng = random.Random(len(found))
        with tempfile.TemporaryDirectory(prefix="kbd-fuzz-") as root:
            disk = Disk(Path(root))
            for step in interleaved(writer.tracks(history, set(writer.forms), rng), rng):
                step(disk)
            disk.close()
            found.extend(_of_folder(one, Path(root)))

    collect()
    return found


def _of_folder(one: SourceFormat, root: Path) -> Iterator[Seed]:
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        relpath = str(path.relative_to(root))
        match one.file_kind(relpath):
            case FileKind.LINES:
                yield Seed(relpath, path.read_bytes()[:SEED_BYTES])
            case FileKind.DOCUMENT | FileKind.DATABASE as kind:
                yield Seed(relpath, b"\n".join(records_of(one, root, relpath, kind))[:SEED_BYTES])
            case FileKind.GZIP | FileKind.ZSTD | None:
                pass


def records_of(one: SourceFormat, root: Path, relpath: str, kind: FileKind) -> list[bytes]:
    """Return the records that the store gives to the decoder."""
    path = root / relpath
    stat = path.stat()
    found = Found(
        str(path), relpath, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, False, kind, stat.st_ctime_ns
    )
    assert kind is not FileKind.DATABASE or isinstance(one, DatabaseFormat)
    now = TODAY.timestamp() + 86400
    reading = batches.read_batches(found, begin(path), one, str(root), now=now, accept_last=None, max_record=1 << 20)
    return [record.data for batch in reading for record in batch.records]
