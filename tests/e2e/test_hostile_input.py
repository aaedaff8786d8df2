"""Words and sizes made to do harm: what a terminal obeys, monstrous records, YAML that bursts, titles with comments."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kbd.core import relyaml
from kbd.core.entries import parse
from tests.e2e.stranger import CONFIG, TITLE, Stranger

# What a terminal would obey, or what turns the order of letters: C0, DEL, C1, line ends, Bidi_Control.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "\x1b[31mE\x1b]0;t\x07\x9b1m\x85\u202eB\u2066\u200f\u061c\x00\x7f\x08\u2028"

@pytest.fixture
def world(tmp_path: Path) -> Stranger:
    # A folder of its own: what a test plants elsewhere lies beside it.
    root = tmp_path.resolve() / "home-of-kbd"
    root.mkdir()
    return Stranger(root)


def evil_everywhere(world: Stranger) -> list[str]:
    """Put controls into each text that a transcript or a knowledge file chooses; return the handles."""
    folder = world.root / "kb" / "d\x1b[31m\u202e"
    folder.mkdir()
    hostile, second = f"Lock fd{EVIL[:5]} leaked\u202e on \x9b exception path", "Another\x85 lesson\x1b[2m of length"
    (folder / "le\x1b[31ms\u202ens.md").write_text(
        f"# Sec\x1b[31mtion\u202e\n\n- [pitfall] **{hostile}** — bo{EVIL[:9]}dy (2025-01-02)\n"
        f"- **{second}** - x (2025-01-01)\n  <!-- ref:\x1b[1m3 | last:20\x1b26 | od\x1bd:act\x1bive -->\n"
        f"- **go\x1b[1m** short\n- [ev\x1bil] **Unclosed \x1b[1m bold\n- **{second}** - dup\n[pitfall] stray \x1b[31m\n"
    )
    (world.root / "kb" / ".knowledge-graph.yaml").write_text(
        '- {s: "A\\e[1m", p: applies_to, o: "src/\\e[31mx\\x9b\\u202e.py", u: "20\\e26"}\n'
        '- {s: "a\\e[1m", p: "wei\\e[1mrd", o: b, "z\\ez": 1}\n'
        '- {s: "A\\e", p: supersedes, o: "B\\e"}\n- {s: "B\\e", p: supersedes, o: "A\\e"}\n'
    )
    (world.root / "onto" / "graph.jsonl").write_text(
        json.dumps({"op": "create", "entity": {"id": "t1\x1b[1m", "type": "Ev\x1b[1mil", "properties": {EVIL: EVIL}}})
        + "\nbroken \x1b[31m\n"
    )
    said = f"as {hostile} said {EVIL}, and {second}"
    for name in ("s\x1b[1m\n1.jsonl", "-rf.jsonl"):
        world.say(said, f"se\x1b[1mss\u202e{name}", cwd=f"/w{EVIL[:4]}", name=name, file="/w/\x1b[31mf\u202e.py")
    with (world.root / "claude" / "projects" / "-w" / "odd.jsonl").open("w") as out:
        out.write('{"type": "od\\u001b[1md", "sessionId": "q\\u001b"}\n' * 40)
    (world.root / "logs" / "l\x1b[1mog\u202e.log").write_text(f"2026-06-10 10:00 as {hostile} says {EVIL}\n\n")
    world.read()
    return [entry["handle"] for entry in world.answer("list", "--all")["entries"]]


SCREENS = """status|sources|doctor|lint|list --all|forecast|log|suppressed|report|undo --list|undo --dry-run|context
context --explain|context --file /w/f.py|context --query lock|search lesson|decay --dry-run|classify|detach --dry-run
classify --write --dry-run|rescan|graph list|graph validate|graph coverage|show H|set H --ref 3 --dry-run
pin H --dry-run|forget H --dry-run|restore H|relate H requires H|purge --entry H --dry-run|adopt F --dry-run
purge --project /w --dry-run|service status|run --once"""


def test_no_screen_shows_what_a_terminal_would_obey(world: Stranger) -> None:
    handles = evil_everywhere(world)
    assert len(handles) >= 3
    note = str(next((world.root / "kb").glob("*/*.md")))
    leaks = []
    for command in re.split(r"[|\n]", SCREENS):
        for handle in handles if " H" in command else [""]:
            words = [handle if word == "H" else note if word == "F" else word for word in command.split()]
            for options in ([], ["--json"]):
                done = world.run(*words, *options)
                found = set(OBEYED.findall(done.stdout + done.stderr))
                leaks += [(*words, *options, found)] if found or "fault of kbd" in done.stderr else []
    assert not leaks


def test_what_is_said_of_a_stranger_s_names_is_safe_too(world: Stranger) -> None:
    evil_everywhere(world)
    words = [["show", EVIL[:8]], ["search", EVIL[:8]], ["graph", "get", "--id", "z\x1b[1m"], ["list", "--type", "\x1b"]]
    words += [["purge", "--session", "s\x1b[1m"], ["relate", "a\x1b", "b\x9b", "c"], ["add", "Ti\x1b[1mtle of", "x"]]
    for one in words:
        done = world.run(*one)
        assert done.exit_code != 0 or one[0] == "search"
        assert not OBEYED.search(done.stdout + done.stderr)


DEEP = "[" * 100_000
MONSTERS = {
    "deep": DEEP + "]" * 100_000,
    "deep and open": '{"a":' * 100_000,
    "deep in a record": f'{{"type": "assistant", "sessionId": "s", "message": {DEEP}{"]" * 100_000}}}',
    "huge integer": f'{{"type": "assistant", "timestamp": {"9" * 100_000}, "message": {{"id": {"9" * 100_000}}}}}',
    "no number": '{"type": "assistant", "timestamp": NaN, "sessionId": Infinity, "message": {"id": -Infinity}}',
    "huge float": '{"type": "assistant", "timestamp": 1e999999, "uuid": -1e999999}',
    "wild times": '{"type": "assistant", "timestamp": 99999999999999999999, "role": "assistant", "content": "x"}',
    "keys": "{" + ",".join(f'"{number}": 1' for number in range(100_000)) + "}",
    "escapes": '{"type": "assistant", "uuid": "\\ud800\\udfff\\u0000", "message": {"content": "\\ud800"}}',
    "NULs": "\0" * 100_000,
}


@pytest.mark.parametrize("monster", MONSTERS)
def test_record_of_monstrous_shape_stands_in_nobody_s_way(world: Stranger, monster: str) -> None:
    world.lesson()
    path = world.say(f"as in {TITLE} we close it")
    (world.root / "chat" / "c.jsonl").write_text(MONSTERS[monster] + "\n")
    (world.root / "onto" / "graph.jsonl").write_text(MONSTERS[monster] + "\n")
    with path.open("a") as out:
        out.write(MONSTERS[monster] + "\n")
    world.say(f"again {TITLE} it was", "s2")
    world.read()
    assert world.refs() == {TITLE: 2}
    done = world.run("graph", "validate", "--base", "lessons")
    assert "fault of kbd" not in done.stderr


BOMBS: dict[str, Callable[[], str]] = {
    "aliases": lambda: "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)),
    "deep": lambda: "a: " + DEEP,
    "deep blocks": lambda: "".join(" " * depth + "a:\n" for depth in range(2_000)),
    "size": lambda: "a: " + "x" * (9 << 20) + "\n",
    "tag": lambda: "!!python/object/apply:os.system ['touch pwned']\n",
    "loop": lambda: "a: &a [*a]\n",
}
# Where YAML comes from, what is called, and the exit codes that say "refused".
PLACES: dict[str, tuple[str, list[str], set[int]]] = {
    "relations": ("kb/.knowledge-graph.yaml", ["run", "--once"], {1}),
    "counters beside": ("kb/lessons.kbd.yaml", ["run", "--once"], {1}),
    "config": ("config.yaml", ["status"], {2}),
    "schema": ("onto/schema.yaml", ["graph", "validate", "--base", "lessons"], {1, 2}),
    "plan": ("plan.yaml", ["graph", "apply", "PLACE", "--base", "lessons"], {1, 2, 6}),
    "contract": ("SKILL.md", ["graph", "check", "PLACE", "--base", "lessons"], {0, 1, 2, 6}),
}


@pytest.mark.parametrize("place", PLACES)
def test_yaml_made_to_burst_is_refused_in_its_time_and_runs_nothing(
    world: Stranger, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.root)
    name, words, codes = PLACES[place]
    if place == "counters beside":
        (world.root / "config.yaml").write_text(CONFIG + "write: {counters: sidecar}\n")
    world.lesson()
    world.say(f"as in {TITLE} we close it")
    slow = {}
    for bomb, make in BOMBS.items():
        text = f"---\nontology:\n  reads: [Task]\n{make()}---\nx\n" if place == "contract" else make()
        (world.root / name).write_text(text)
        began = time.process_time()
        done = world.run(*(str(world.root / name) if word == "PLACE" else word for word in words))
        slow |= {bomb: time.process_time() - began} if time.process_time() - began > 6 else {}
        assert done.exit_code in codes, (bomb, done.output)
        assert "fault of kbd" not in done.stderr
        assert (world.root / name).read_text() == text
    assert not slow
    assert not list(world.root.rglob("pwned"))


INJECTIONS = [
    "a --> b of sorts",
    "<!-- ref:99 | last:2026-01-01 --> here",
    "ends in --!> now",
    "x `**` y <!-- z",
    "{s: x} & *y of it",
]


@pytest.mark.parametrize("title", INJECTIONS)
def test_title_breaks_out_of_no_comment(world: Stranger, title: str) -> None:
    note = world.lesson(title)
    before = note.read_text()
    entries = parse(note.read_bytes()).entries
    world.say(f"as in {entries[0].title} we close it")
    world.read()
    world.read()
    after = note.read_text()
    assert before.rstrip("\n") in after
    added = after.replace(before.rstrip("\n"), "", 1).strip()
    assert re.fullmatch(r"(<!-- ref:\d+ \| last:(none|[\d-]+) \| decay:active -->)?", added)
    assert len(parse(note.read_bytes()).entries) == 1


ODD_FILES = ["a: b -> c.py", "x.py, p: supersedes, o: y}", "'\"\\#&*!|>%@`.py", "- {s: a, p: requires, o: b}"]


@pytest.mark.parametrize("file", ODD_FILES)
def test_file_name_breaks_out_of_no_yaml(world: Stranger, file: str) -> None:
    world.lesson()
    world.say(f"as in {TITLE} we close it", file=f"/w/{file}")
    world.read()
    data = (world.root / "kb" / ".knowledge-graph.yaml").read_bytes()
    (relation,) = relyaml.parse(data, "r").relations
    assert (relation.s, relation.p, relation.o) == (TITLE, "applies_to", file)


