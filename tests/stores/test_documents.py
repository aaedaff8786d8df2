"""Documents that an agent rewrites: whole ones only, each content once, whatever its times say."""

import json
import os
from pathlib import Path

import pytest

from kbd.errors import FileUnreadable
from kbd.sources.jsonl import read_value
from kbd.sources.opencode import FORMAT as OPENCODE
from kbd.store.documents import DocumentSpec, read_document
from kbd.store.position import Position
from kbd.store.tail import Batch

START = Position(0, 0)


def spec(root: Path, **changes) -> DocumentSpec:
    values = {"companions": None, "is_whole": lambda data: read_value(data) is not None, "max_bytes": 1 << 20}
    return DocumentSpec(str(root), **(values | changes))


def read(path: Path, position: Position = START, *, now: float = 4e9, **changes) -> list[Batch]:
    return list(read_document(path, position, spec(path.parent, **changes), now=now))


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a.json"
    found.write_text('{"n": 1}')
    return found


def test_document_comes_once_until_it_changes(path):
    (batch,) = read(path)
    assert [record.data for record in batch.records] == [b'{"n": 1}']
    assert batch.position.ended
    assert read(path, batch.position) == []


def test_rewritten_document_of_equal_size_and_time_comes_again(path):
    os.utime(path, (1e9, 1e9))
    (batch,) = read(path)
    path.write_text('{"n": 2}')
    os.utime(path, (1e9, 1e9))
    assert [record.data for record in read(path, batch.position)[0].records] == [b'{"n": 2}']


def test_replaced_document_of_equal_content_gives_no_record(path):
    (batch,) = read(path)
    other = path.with_suffix(".tmp")
    other.write_bytes(path.read_bytes())
    os.replace(other, path)
    (again,) = read(path, batch.position)
    assert (again.records, again.position.ino) == ((), path.stat().st_ino)


def test_shorter_document_is_a_document(path):
    (batch,) = read(path)
    path.write_text("[]")
    assert [record.data for record in read(path, batch.position)[0].records] == [b"[]"]


def test_half_written_document_waits_for_its_other_half(path):
    path.write_text('{"n": [1, 2')
    (batch,) = read(path, now=1000.0)
    assert (batch.records, batch.position.ended) == ((), False)
    assert read(path, batch.position, now=1059.0)[0].records == ()
    path.write_text('{"n": [1, 2]}')
    (whole,) = read(path, batch.position, now=1060.0)
    assert [record.data for record in whole.records] == [b'{"n": [1, 2]}']


@pytest.mark.parametrize("data", [b'{"n": [1, 2', b"", b"\0\0\0", b"{}{}"])
def test_document_that_stays_broken_is_handed_on_once(path, data):
    path.write_bytes(data)
    since = 4e9
    (waiting,) = read(path, now=since)
    (batch,) = read(path, waiting.position, now=since + 60)
    assert [record.data for record in batch.records] == [data]
    assert read(path, batch.position, now=since + 61) == []


def test_clock_set_back_begins_the_wait_anew(path):
    path.write_text("{")
    (waiting,) = read(path, now=5000.0)
    (again,) = read(path, waiting.position, now=1000.0)
    assert (again.records, again.position.pending_since) == ((), 1000.0)


@pytest.mark.parametrize("data", [b'\xef\xbb\xbf{"n": 1}', b' \r\n{"n": 1}\0\0', b'{"n": "\\ud800"}', b'{"n": NaN}'])
def test_odd_but_whole_documents_do_not_wait(path, data):
    path.write_bytes(data)
    assert len(read(path)[0].records) == 1


def test_too_large_a_document_says_so(path):
    path.write_text(json.dumps("x" * 2000))
    with pytest.raises(FileUnreadable, match="larger"):
        read(path, max_bytes=1000)


def test_absent_document_is_its_own_answer(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone.json")


def test_document_written_just_now_is_looked_at_again(path):
    (batch,) = read(path, now=path.stat().st_ctime + 1)
    assert not batch.position.ended


class TestCompanions:
    @pytest.fixture
    def root(self, tmp_path):
        for relpath, document in {
            "storage/part/m/p.json": {"id": "p", "messageID": "m", "sessionID": "s", "type": "text", "text": "one"},
            "storage/message/s/m.json": {"id": "m", "role": "assistant"},
            "storage/session/x/s.json": {"id": "s", "parentID": "t"},
            "storage/session/y/t.json": {"id": "t"},
        }.items():
            path = tmp_path / relpath
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document))
        return tmp_path

    def read(self, root: Path, position: Position = START) -> list[Batch]:
        def companions(found):
            return OPENCODE.companions("storage/part/m/p.json", found)

        path = root / "storage/part/m/p.json"
        return list(read_document(path, position, spec(root, companions=companions), now=4e9))

    def ids(self, batches: list[Batch]) -> list[object]:
        return [found and found["id"] for batch in batches for one in batch.records for found in json.loads(one.data)]

    def test_come_with_the_document(self, root):
        batches = self.read(root)
        assert self.ids(batches) == ["p", "m", "s", "t"]
        assert batches[0].position.ended
        assert self.read(root, batches[0].position) == []

    def test_that_come_late_are_waited_for_and_then_taken(self, root):
        (root / "storage/message/s/m.json").rename(root / "late")
        batches = self.read(root)
        assert (self.ids(batches), batches[0].position.ended) == (["p", None, "s", "t"], False)
        (root / "late").rename(root / "storage/message/s/m.json")
        assert self.ids(self.read(root, batches[0].position)) == ["p", "m", "s", "t"]

    @pytest.mark.parametrize("name", ["../../../outside", "a/b", "*", "..", "", "x" * 999, 7, None, ["m"]])
    def test_outside_the_root_are_never_read(self, root, tmp_path_factory, name):
        (tmp_path_factory.getbasetemp() / "outside.json").write_text('{"id": "stolen"}')
        part = {"id": "p", "messageID": name, "sessionID": name, "type": "text"}
        (root / "storage/part/m/p.json").write_text(json.dumps(part))
        assert self.ids(self.read(root)) == ["p"]

    def test_behind_links_are_never_read(self, root, tmp_path_factory):
        outside = tmp_path_factory.mktemp("outside")
        (outside / "m.json").write_text('{"id": "stolen"}')
        (root / "storage/message/s/m.json").unlink()
        (root / "storage/message/s").rmdir()
        (root / "storage/message/s").symlink_to(outside)
        assert self.ids(self.read(root)) == ["p", None, "s", "t"]

    def test_circles_of_parents_end(self, root):
        (root / "storage/session/y/t.json").write_text('{"id": "t", "parentID": "s"}')
        assert len(self.ids(self.read(root))) <= 10
