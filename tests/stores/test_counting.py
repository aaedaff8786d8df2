"""Through the whole of kbd: pieces, passes, copies and orders of reading give one and the same number."""

import itertools
import json
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
import zstandard
from agent_stores import GooseStore, HermesStore, OpenCodeStore, millis, old_part, text
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbd.cli.main import main
from kbd.config import load_config
from kbd.engine import Clock, Engine

BACKOFF, UTC = "Backoff must be capped", "Store timestamps in UTC"
KB = f"# L\n\n- [pitfall] **{BACKOFF}** — why (2026-05-19)\n- [pitfall] **{UTC}** — why (2026-05-19)\n"


class Kbd:
    """kbd on one base and one source, in a folder of its own."""

    def __init__(self, root: Path, agent: str) -> None:
        self.root, self.source = root, root / "source"
        (root / "kb").mkdir()
        (root / "kb/l.md").write_text(KB)
        self.source.mkdir()
        (root / "config.yaml").write_text(
            'bases:\n  - {name: l, files: ["kb/*.md"], relations: kb/.g.yaml}\n'
            f"sources:\n  - {{agent: {agent}, root: source}}\n"
        )

    def run(self, *args: str) -> str:
        options = ["--config", str(self.root / "config.yaml"), "--state-dir", str(self.root / "state")]
        result = CliRunner().invoke(main, [*options, "--now", "2026-06-30", *args])
        assert result.exit_code in (0, 1, 3), result.output
        return result.stdout

    def counts(self) -> dict[str, tuple[int, int, int]]:
        entries = json.loads(self.run("list", "--all", "--json"))["entries"]
        return {entry["title"]: (entry["ref"], entry["citations"], entry["sessions"]) for entry in entries}

    def read(self) -> dict[str, tuple[int, int, int]]:
        self.run("run", "--once")
        return self.counts()

    def rescanned(self) -> dict[str, tuple[int, int, int]]:
        self.run("rescan")
        return self.counts()


ORIGIN = [("m1", "2026-06-10T09:00:00", f"Per {BACKOFF}."), ("m2", "2026-06-10T09:01:00", f"Then {UTC}.")]
ORIGIN.append(("m3", "2026-06-11T09:00:00", f"Per {BACKOFF}, again."))


def opencode_copies(store: OpenCodeStore) -> list[list[tuple[str, ...]]]:
    """Return what is written, by session: an origin, a fork of it on a later day that goes on, a fork of the fork."""
    store.session("s1", "2026-06-10T09:00:00", title="T")
    store.session("s2", "2026-06-14T09:00:00", title="T (fork #1)")
    store.session("s3", "2026-06-15T09:00:00", title="T (fork #2)")
    fork = [(f"f{name}", f"2026-06-14T09:00:0{i}", words) for i, (name, _, words) in enumerate(ORIGIN)]
    fork.append(("f9", "2026-06-14T10:00:00", f"Own: {UTC}."))
    second = [(f"g{name}", f"2026-06-15T09:00:0{i}", words) for i, (name, _, words) in enumerate(fork)]
    return [[("s1", *row) for row in ORIGIN], [("s2", *row) for row in fork], [("s3", *row) for row in second]]


def piecewise(kbd: Kbd, events: list[Callable[[], None]], pieces: list[int]) -> dict[str, tuple[int, int, int]]:
    """Let things happen, with a pass of kbd after so many of them, and one at the end."""
    sizes = itertools.cycle(pieces)
    while events:
        size = next(sizes)
        for event in events[:size]:
            event()
        events = events[size:]
        kbd.read()
    return kbd.read()


PIECES = st.lists(st.integers(1, 6), min_size=1, max_size=4)
QUICK = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.permutations(range(3)), PIECES, st.booleans())
def test_forks_count_once_in_any_order_and_in_any_pieces(tmp_path_factory, order, pieces, grows):
    kbd = Kbd(tmp_path_factory.mktemp("k"), "opencode")
    store = OpenCodeStore(kbd.source / "opencode.db")
    sessions = opencode_copies(store)
    events: list[Callable[[], None]] = []
    for session, name, when, words in (row for index in order for row in sessions[index]):
        first = text(words[:9] if grows else words)
        events.append(partial(store.message, name, session, when, first))
        if grows:
            events.append(partial(store.grow, f"{name}_p0", when[:-1] + "9", text(words)))
    expected = {BACKOFF: (2, 2, 1), UTC: (2, 2, 2)}
    assert piecewise(kbd, events, pieces) == expected
    assert kbd.rescanned() == expected
    store.close()


@QUICK
@given(st.permutations(range(3)), PIECES)
def test_chain_of_compactions_counts_once_in_any_order(tmp_path_factory, order, pieces):
    kbd = Kbd(tmp_path_factory.mktemp("k"), "hermes")
    store = HermesStore(kbd.source / "state.db")
    for name, parent in (("a", None), ("b", "a"), ("c", "b")):
        store.session(name, parent)
    rows = [[("a", when, words) for _, when, words in ORIGIN]]
    rows.append([("b", "2026-06-14T09:00:00", words) for _, _, words in ORIGIN[1:]])
    rows.append([("c", f"2026-06-15T09:00:0{i}", words) for i, (_, _, words) in enumerate([ORIGIN[0], ORIGIN[2]])])
    rows[2].append(("c", "2026-06-15T10:00:00", f"Last: {UTC}."))
    events = [partial(store.message, *row) for index in order for row in rows[index]]
    expected = {BACKOFF: (2, 2, 1), UTC: (2, 2, 1)}
    assert piecewise(kbd, events, pieces) == expected
    assert kbd.rescanned() == expected
    store.close()


@QUICK
@given(st.lists(st.sampled_from(["say", "rewrite", "read"]), max_size=9))
def test_rewritten_conversations_count_once(tmp_path_factory, steps):
    kbd = Kbd(tmp_path_factory.mktemp("k"), "goose")
    store = GooseStore(kbd.source / "sessions.db")
    store.session("g")
    said = 0
    for step in steps:
        if step == "say":
            said += 1
            store.message("g", f"2026-06-{said:02d}T09:00:00", text(f"Per {BACKOFF}."))
        elif step == "rewrite":
            store.rewrite("g")
        else:
            kbd.read()
    expected = {BACKOFF: (said, said, min(said, 1)), UTC: (0, 0, 0)}
    assert kbd.read() == expected
    assert kbd.rescanned() == expected
    store.close()


@pytest.mark.parametrize("first", ["files", "database", "together"])
def test_old_files_and_the_database_count_once(tmp_path, first):
    kbd = Kbd(tmp_path, "opencode")

    def files() -> None:
        for name, when, words in ORIGIN:
            old_part(kbd.source, "s1", name, f"{name}_p0", when, text(words))

    def database() -> None:
        store = OpenCodeStore(kbd.source / "opencode.db")
        store.session("s1", "2026-06-10T09:00:00")
        for name, when, words in ORIGIN:
            store.message(name, "s1", when, text(words))
        store.close()

    for step in {"files": (files, database), "database": (database, files), "together": (files, database)}[first]:
        step()
        if first != "together":
            kbd.read()
    expected = {BACKOFF: (2, 2, 1), UTC: (1, 1, 1)}
    assert kbd.read() == expected
    assert kbd.rescanned() == expected


THREAD = "01900000-0000-7000-8000-000000000001"
ROLLOUT = f"rollout-2026-06-10T09-00-00-{THREAD}.jsonl"
PLACES = [f"sessions/2026/06/10/{ROLLOUT}", f"archived_sessions/{ROLLOUT}", f"archived_sessions/{ROLLOUT}.zst"]


def rollout(*, with_ids: bool) -> bytes:
    lines = [("session_meta", {"id": THREAD, "cwd": "/w", "timestamp": "2026-06-10T09:00:00Z"}, "2026-06-10T09:00:00Z")]
    for name, when, words in ORIGIN:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
        lines.append(("response_item", item | ({"id": f"msg_{name}"} if with_ids else {}), f"{when}Z"))
    rows = ({"timestamp": at, "type": kind, "payload": payload} for kind, payload, at in lines)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("order", [*itertools.permutations(range(3)), (2, 1, 2, 0)])
@pytest.mark.parametrize("keeps", [True, False], ids=["beside each other", "one at a time"])
def test_a_rollout_under_three_names_counts_once(tmp_path, order, with_ids, keeps):
    kbd, data = Kbd(tmp_path, "codex"), rollout(with_ids=with_ids)
    expected = {BACKOFF: (2, 2, 1), UTC: (1, 1, 1)}
    for index in order:
        if not keeps:
            shutil.rmtree(kbd.source)
        path = kbd.source / PLACES[index]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.ZstdCompressor().compress(data) if index == 2 else data)
        assert kbd.read() == expected
    assert kbd.rescanned() == expected


def test_plain_rollout_hides_the_packed_one(tmp_path):
    kbd = Kbd(tmp_path, "codex")
    (kbd.source / "archived_sessions").mkdir()
    (kbd.source / PLACES[1]).write_bytes(rollout(with_ids=True))
    (kbd.source / PLACES[2]).write_bytes(b"\x28\xb5\x2f\xfd half of it")
    assert kbd.read()[BACKOFF] == (2, 2, 1)
    sources = json.loads(kbd.run("status", "--json"))["sources"]
    assert [source["files"] for source in sources] == [1]


def test_a_store_that_cannot_be_read_is_said_and_read_later(tmp_path):
    kbd = Kbd(tmp_path, "opencode")
    path = kbd.source / "opencode.db"
    path.write_bytes(b"no database at all" * 99)
    kbd.run("run", "--once")
    problems = json.loads(kbd.run("status", "--json"))["problems"]
    assert [problem["code"] for problem in problems] == ["file_unreadable"]
    path.unlink()
    store = OpenCodeStore(path)
    store.session("s1", "2026-06-10T09:00:00")
    store.message("m", "s1", "2026-06-10T09:00:00", text(f"Per {BACKOFF}."))
    assert kbd.read()[BACKOFF] == (1, 1, 1)
    assert json.loads(kbd.run("status", "--json"))["problems"] == []
    store.close()


def test_listing_is_judged_over_all_parts_of_a_message(tmp_path):
    kbd = Kbd(tmp_path, "opencode")
    titles = [f"Lesson number {number:02d}" for number in range(12)]
    (kbd.root / "kb/l.md").write_text("".join(f"- [pitfall] **{title}** — why (2026-05-19)\n" for title in titles))
    store = OpenCodeStore(kbd.source / "opencode.db")
    store.session("s1", "2026-06-10T09:00:00")
    for name, some in (("a", titles[:6]), ("b", titles[6:])):
        store.message(name, "s1", "2026-06-10T09:00:00", text(", ".join(some)))
    assert {count[0] for count in kbd.read().values()} == {1}
    store.part("a_p1", "a", "s1", millis("2026-06-10T09:00:01"), text(", ".join(titles[6:])))
    assert {kbd.read()[title][0] for title in titles[:6]} == {0}
    store.close()


def test_a_document_that_came_to_rest_is_still_known_by_its_copies_and_its_numbers(tmp_path):
    kbd = Kbd(tmp_path, "cline")
    (tmp_path / "state").mkdir(mode=0o700)
    turns = [("user", "go"), *(("assistant", said) for said in ("I begin.", f"Per {BACKOFF}.", "Done.", "And so on."))]
    told = json.dumps([{"role": role, "content": [{"type": "text", "text": said}]} for role, said in turns])
    now = datetime.fromisoformat("2026-06-30T00:00:00+00:00")
    for known, task in enumerate(("1781082000000", "1781082999999")):
        file = kbd.source / "tasks" / task / "api_conversation_history.json"
        file.parent.mkdir(parents=True)
        file.write_text(told)
        for seconds in (0, 60, 120):  # while it is being written, and twice at rest
            engine = Engine(load_config(tmp_path / "config.yaml"), tmp_path / "state", {}, str(tmp_path), now)
            engine.run_pass(Clock(now, time.time() + seconds, now.tzinfo), immediate=True)
            engine.close()
            assert kbd.counts()[BACKOFF] == (1, 1, 1)
            [source] = json.loads(kbd.run("status", "--json"))["sources"]
            assert [source[key] for key in ("files", "records", "messages")] == [known + 1, known + 1, 4 * known + 4]


@pytest.mark.parametrize("apart", [True, False], ids=["records", "blocks"])
def test_a_message_of_many_pieces_takes_no_more_than_their_number(tmp_path, apart):
    def steps(pieces: int) -> int:
        """Return what the ledger did, in thousands of steps of its machine, to take so many pieces of a message."""
        root = tmp_path / str(pieces)
        root.mkdir()
        kbd, done = Kbd(root, "claude-code"), [0]
        (root / "state").mkdir(mode=0o700)
        said = [{"type": "text", "text": f"{BACKOFF} {number:06d}"} for number in range(pieces)]
        parts = [[one] for one in said] if apart else [said]
        told = {"type": "assistant", "timestamp": "2026-06-12T09:00:00Z", "sessionId": "S", "cwd": "/w"}
        lines = [{**told, "message": {"id": "m1", "role": "assistant", "content": part}} for part in parts]
        file = kbd.source / "projects" / "-w" / "S.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        now = datetime.fromisoformat("2026-06-30T00:00:00+00:00")
        engine = Engine(load_config(root / "config.yaml"), root / "state", {}, str(root), now)
        engine.frame.ledger.db.set_progress_handler(lambda: done.__setitem__(0, done[0] + 1), 1000)
        engine.run_pass(Clock(now, time.time(), now.tzinfo), immediate=True)
        engine.close()
        assert kbd.counts()[BACKOFF] == (1, pieces, 1)
        return done[0]

    assert steps(900) < 5 * steps(300)
