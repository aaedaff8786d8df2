"""The cache is the replay, however the log came about and whoever else reads or writes it."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbd.core.graph_state import GraphState, Overlay, value_key
from kbd.core.operations import record_of
from kbd.errors import FileUnreadable, FileUnwritable
from kbd.store import eventlog, graphcache
from tests.core.graph_world import create, delete, relate, unrelate, update

INDEXED = frozenset({"name"})


def lines(operations):
    return "".join(json.dumps(record_of(one)) + "\n" for one in operations).encode()


def content(view):
    edges = {edge[:3]: dict(edge.properties) for edge in view.edges()}
    return [*view.entities()], edges, {name: sorted(view.holders("name", value_key(name))) for name in ("x", "y")}


def cached(state, log, indexed=INDEXED):
    with graphcache.opened(state, str(log), indexed) as cache:
        with eventlog.reading(log) as file:
            cache.refresh(file)
        return content(cache.view), cache.end, [(line, fault.code) for line, fault, _ in cache.faults()]


def replayed(log):
    state, faults = GraphState(), []
    with eventlog.reading(log) as file:
        for line in eventlog.Log(file) if file else ():
            codes = [state.apply(operation) for operation in line.operations]
            faults += [(line.number, code) for code in codes if code]
            faults += [(line.number, fault.code) for fault in line.faults]
    return content(Overlay.of(state, INDEXED)), faults


def check(state, log):
    found, _, faults = cached(state, log)
    assert (found, faults) == replayed(log)


IDS = st.sampled_from("abc")
STEPS = st.one_of(
    st.builds(create, IDS, st.just("T"), name=st.sampled_from(["x", ["x", "y"], None])),
    st.builds(update, IDS, name=st.sampled_from(["x", "y"])),
    st.builds(delete, IDS),
    st.builds(relate, IDS, st.sampled_from(["r", "s"]), IDS, w=st.integers(1, 2)),
    st.builds(unrelate, IDS, st.sampled_from(["r", "s"]), IDS),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(STEPS, max_size=8), max_size=5))
def test_what_is_read_bit_by_bit_is_the_replay(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("graph")
    log = folder / "graph.jsonl"
    for part in parts:
        with log.open("ab") as file:
            file.write(lines(part))
        check(folder / "state", log)
    check(folder / "anew", log)


A, B, C = create("a", "T", name="x"), create("b", "T", name="y"), create("c", "T", name="x")


def test_a_log_that_is_not_there_is_empty_and_may_come_and_go(tmp_path):
    log = tmp_path / "graph.jsonl"
    for data in (None, lines([A]), None, lines([B])):
        log.unlink(missing_ok=True)
        if data is not None:
            log.write_bytes(data)
        check(tmp_path / "state", log)


@pytest.mark.parametrize(
    "after",
    [lines([B]), lines([B, A]), lines([C, B, A]), b"", lines([A])[:-9], lines([A]).replace(b'"a"', b'"z"')],
    ids=["other", "longer", "longest", "empty", "torn", "same length"],
)
def test_a_rewritten_log_is_read_anew(tmp_path, after):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]))
    check(tmp_path / "state", log)
    os.utime(log, ns=(1, 1))
    log.write_bytes(after)
    check(tmp_path / "state", log)


def test_a_replaced_log_with_the_same_beginning_is_read_anew(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]))
    check(tmp_path / "state", log)
    (tmp_path / "new").write_bytes(lines([A, B]))
    os.replace(tmp_path / "new", log)
    check(tmp_path / "state", log)


def test_other_indexed_properties_are_indexed_anew(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A, B]))
    assert cached(tmp_path / "state", log, frozenset())[0][2] == {"x": [], "y": []}
    check(tmp_path / "state", log)


def test_nothing_is_read_when_nothing_is_new(tmp_path, monkeypatch):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A, B]))
    check(tmp_path / "state", log)
    monkeypatch.setattr(graphcache, "Log", None)
    assert cached(tmp_path / "state", log)[0][0][0].id == "a"


def test_a_torn_line_is_looked_at_again(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]) + lines([B])[:-5])
    check(tmp_path / "state", log)
    log.write_bytes(lines([A, B]))
    check(tmp_path / "state", log)


def test_two_readers_at_once_take_each_line_once(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]))
    with graphcache.opened(tmp_path, str(log), INDEXED) as one, graphcache.opened(tmp_path, str(log), INDEXED) as other:
        for cache in (one, other):
            with eventlog.reading(log) as file:
                cache.refresh(file)
        with log.open("ab") as file:
            file.write(lines([unrelate("a", "r", "b")]))
        for cache in (one, other):
            with eventlog.reading(log) as file:
                cache.refresh(file)
        assert [fault.code for _, fault, _ in other.faults()] == ["unknown_edge"]


def test_a_damaged_cache_is_made_anew(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]))
    check(tmp_path / "state", log)
    (database,) = (tmp_path / "state" / "graphs").glob("*.db")
    database.write_bytes(b"no database at all, but long enough to be one" * 100)
    check(tmp_path / "state", log)


def test_a_cache_of_another_kbd_is_made_anew(tmp_path):
    log = tmp_path / "graph.jsonl"
    log.write_bytes(lines([A]))
    check(tmp_path / "state", log)
    (database,) = (tmp_path / "state" / "graphs").glob("*.db")
    with sqlite3.connect(database) as db:
        db.execute("DROP TABLE entities")
        db.execute("PRAGMA user_version=99")
    db.close()
    check(tmp_path / "state", log)


def test_a_cache_that_proves_damaged_later_is_removed(tmp_path):
    with pytest.raises(FileUnreadable, match="is removed"), graphcache.opened(tmp_path, "graph.jsonl", ()):
        raise sqlite3.DatabaseError("malformed")
    assert list((tmp_path / "graphs").iterdir()) == []


def test_a_state_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileUnwritable), graphcache.opened(tmp_path / "file", "graph.jsonl", ()):
        pass


def test_the_cache_is_the_users_alone(tmp_path):
    with graphcache.opened(tmp_path / "state", "graph.jsonl", ()):
        (database,) = (tmp_path / "state" / "graphs").glob("*.db")
        assert database.stat().st_mode & 0o777 == 0o600
        assert database.parent.stat().st_mode & 0o777 == 0o700
