"""The configuration: every fault at once, each with its line."""

import os
import stat
from datetime import date
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kbd.config import (
    Config,
    data_dir,
    default_config,
    find_config,
    load_config,
    parse_config,
    state_dir,
    write_templates,
)
from kbd.config.sections import Document
from kbd.config.tree import MAX_BYTES
from kbd.errors import FileUnwritable, UsageError

EXAMPLE = Path(__file__).parent.parent / "config.example.yaml"
BASE = "bases: [{name: b, files: [kb/*.md]}]\n"


def load(folder: Path, text: str | bytes, **arguments) -> Config:
    path = folder / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path, **arguments)


def faults(folder: Path, text: str | bytes, **arguments) -> list[str]:
    """Return the lines of the error without the path before `:LINE`."""
    with pytest.raises(UsageError) as caught:
        load(folder, text, **arguments)
    assert caught.value.exit_code == 2
    prefix = f"{folder / 'config.yaml'}:"
    lines = str(caught.value).split("\n")
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix) for line in lines]


def test_all_faults_are_reported_at_once_each_with_its_line(tmp_path):
    text = """\
bases:
  - name: b
    files: kb/*.md
    evergren: [Rules]
sources:
  - {agent: claude-cod}
  - {agent: codex, format: text}
  - {path: logs, format: tex}
decay:
  dormant_day: 3
  dormant_days: -1
  at: 24:00
  clock: 7
match: {listing_fraction: nan, count_thinking: perhaps}
blind_days: 3
stages: {plan: [desicion]}
scan: [60]
"""
    assert faults(tmp_path, text) == [
        "3: bases[0].files: expected a list, got 'kb/*.md'; write [kb/*.md]",
        "4: bases[0].evergren: unknown key; did you mean evergreen?",
        "6: sources[0].agent: unknown agent 'claude-cod'; did you mean claude-code?",
        "7: sources[1].format: both agent and format; an agent has its own format; keep one of the two",
        "8: sources[2].format: expected text, chat-jsonl or otel-genai, got 'tex'; did you mean text?",
        "10: decay.dormant_day: unknown key; did you mean dormant_days?",
        "11: decay.dormant_days: expected a whole number from 1 to 36500, got '-1'",
        "12: decay.at: expected a time such as 03:30, got '24:00'",
        "13: decay.clock: expected calendar or active, got '7'",
        "14: match.count_thinking: expected true or false, got 'perhaps'",
        "14: match.listing_fraction: expected a number from 0 to 1, got 'nan'",
        "15: blind_days: unknown key; it belongs under decay",
        "16: stages.plan[0]: unknown type 'desicion'; did you mean decision?",
        "17: scan: expected a mapping, got a list",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "1: bases: no base; write for example", id="empty-file"),
        pytest.param("bases:\n", "1: bases: no base;", id="empty-bases"),
        pytest.param("- a\n", "1: expected a mapping, got a list;", id="list-on-top"),
        pytest.param("just text", "1: expected a mapping, got 'just text';", id="text-on-top"),
        pytest.param("bases: [{files: [a.md]}]", "1: bases[0].name: is missing", id="no-name"),
        pytest.param("bases: [{name: b}]", "1: bases[0].files: is missing", id="no-files"),
        pytest.param("bases: [{name: b, files: []}]", "1: bases[0].files: no pattern;", id="empty-files"),
        pytest.param("bases: [{name: b, files: [~]}]", "1: bases[0].files[0]: is empty", id="null-item"),
        pytest.param("bases: [5]", "1: bases[0]: expected a mapping, got '5'", id="base-is-number"),
        pytest.param('bases: [{name: "a\\nb", files: [x]}]', "1: bases[0].name: expected text on one", id="newline"),
        pytest.param('bases: [{name: b, files: ["a\\0"]}]', "1: bases[0].files[0]: expected text on", id="nul"),
        pytest.param('bases: [{name: b, files: ["\\ud800"]}]', "1: bases[0].files[0]: expected", id="surrogate"),
        pytest.param(BASE + "scan:\n  every_seconds: 5\n\n  every_seconds: 6", "5: scan.every_seconds: given twice (f"),
        pytest.param(BASE + BASE, "2: bases: given twice (first on line 1); keep one", id="section-twice"),
        pytest.param(BASE + "a: b: c\n", "2: not valid YAML: mapping values are not allowed", id="syntax"),
        pytest.param(BASE + "\tx: 1\n", "2: not valid YAML:", id="tab"),
        pytest.param(BASE + "x: \x07\n", "2: not valid YAML: character U+0007 is not allowed", id="bell"),
        pytest.param(BASE + "---\n" + BASE, "2: not valid YAML:", id="two-documents"),
        pytest.param(BASE + "scan: *nowhere\n", "2: not valid YAML:", id="undefined-alias"),
        pytest.param(BASE.encode() + b"x: \xff\n", "2: not valid UTF-8;", id="not-utf-8"),
        pytest.param(BASE + "? [a]\n: 1\n", "2: a key must be text", id="list-as-key"),
        pytest.param(BASE + "types: !!python/object:os.system {}", "2: types: the tag tag:yaml.org,2002:py", id="tag"),
        pytest.param(BASE + "x: " + "[" * 100_000, "2: nested over 20 deep", id="deep"),
        pytest.param(BASE + "x: [" + "1," * 30_000 + "]", "2: over 20000 values", id="many"),
        pytest.param(BASE + "#" * MAX_BYTES, "1: the file is over 1 MiB;", id="large"),
        pytest.param(BASE + '"\x1b[31m": 1', "2: not valid YAML: character U+001B", id="escape-in-key"),
        pytest.param(BASE + '"\\e[31m": 1', "2: '\\x1b[31m': unknown key", id="escaped-escape-in-key"),
        pytest.param(BASE + "decay: {marker: '-->'}", "2: decay.marker: expected up to 8 characters", id="marker"),
        pytest.param(BASE + "decay: {dormant_days: 1.5}", "2: decay.dormant_days: expected a whole", id="half-day"),
        pytest.param(BASE + "decay: {dormant_days: " + "9" * 5000 + "}", "2: decay.dormant_days: exp", id="huge"),
        pytest.param(BASE + "evidence: {snippet_chars: -1}", "2: evidence.snippet_chars: expected a whole num"),
        pytest.param(BASE + "match: {listing_fraction: 1.01}", "2: match.listing_fraction: expected a number"),
        pytest.param(BASE + "types: {x: [boom]}", "2: types.x: expected one word of 2 to 40", id="task-box-as-type"),
        pytest.param(BASE + "sources: [{root: /x}]", "2: sources[0]: neither agent nor format;"),
        pytest.param(BASE + "sources: [{agent: pi, path: x}]", "2: sources[0].path: path belongs to a format;"),
        pytest.param(BASE + "sources: [{format: text, root: x}]", "2: sources[0].root: root belongs to an agent;"),
        pytest.param(BASE + "sources: [{format: text}]", "2: sources[0]: format without path;"),
        pytest.param(
            BASE + "sources:\n- {name: a, agent: pi}\n- {name: a, agent: pi}",
            "4: sources[1].name: another source is named a; rename one",
            id="two-sources-of-one-name",
        ),
    ],
)
def test_single_fault_is_the_only_one(tmp_path, text, fault):
    found = faults(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_aliases_that_multiply_are_stopped(tmp_path):
    assert any("aliases make this" in fault for fault in faults(tmp_path, BASE + "x: &a [*a]\n"))
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("aliases make this value too large" in fault for fault in faults(tmp_path, BASE + "\n".join(lines)))


def test_scalars_mean_what_their_key_takes(tmp_path):
    config = load(
        tmp_path,
        """\
bases: [{name: no, files: [1.10, 2026-01-01, "null"]}]
decay: {at: 22:00, dormant_days: "45", marker: ""}
match: {count_thinking: True, listing_fraction: 1}
""",
    )
    assert config.bases[0].name == "no"
    assert [Path(file).name for file in config.bases[0].files] == ["1.10", "2026-01-01", "null"]
    assert (config.decay.at, config.decay.dormant_days, config.decay.marker) == ("22:00", 45, "")
    assert (config.match.count_thinking, config.match.listing_fraction) == (True, 1.0)


def test_empty_section_and_empty_key_take_their_defaults(tmp_path):
    config = load(tmp_path, BASE + "sources:\ntypes:\ndecay: {at: , clock: ~}\nscan: null\n")
    assert config.sources == ()
    assert config.decay == default_config(tmp_path).decay


def test_stage_of_the_file_is_added_to_the_others(tmp_path):
    config = load(tmp_path, BASE + "types: {Risk: [may fail]}\nstages: {ship: [RISK, pitfall], plan: []}\n")
    assert config.types == {"risk": ("may fail",)}
    assert config.stages["ship"] == ("risk", "pitfall")
    assert config.stages["plan"] == ()
    assert config.stages["review"] == ("pitfall", "guideline")


def test_paths_are_relative_to_the_file_and_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    config = load(
        tmp_path,
        """\
bases:
  - {name: b, files: [../kb/**/*.md], projects: [~/work], graph: {log: g/x.jsonl}}
sources:
  - {agent: codex, root: ~/.codex, exclude: [~/secret/**, "*/tmp/*"]}
""",
    )
    base, source = config.bases[0], config.sources[0]
    assert config.root == tmp_path
    assert base.files == (str(tmp_path.parent / "kb/**/*.md"),)
    assert base.relations == str(tmp_path.parent / "kb/.knowledge-graph.yaml")
    assert base.projects == ("/home/ada/work",)
    assert base.graph is not None
    assert (base.graph.log, base.graph.schema) == (str(tmp_path / "g/x.jsonl"), str(tmp_path / "ontology/schema.yaml"))
    assert source.folder == "/home/ada/.codex"
    assert source.exclude == ("/home/ada/secret/**", "*/tmp/*")


def test_unnamed_sources_are_named_by_agent_or_folder_and_numbered(tmp_path):
    config = load(
        tmp_path,
        BASE
        + """\
sources:
  - agent: pi
  - {name: pi-2, agent: pi, root: a}
  - {agent: pi, root: b}
  - {path: my/logs, format: text}
  - {path: /, format: text}
""",
    )
    assert [source.name for source in config.sources] == ["pi", "pi-2", "pi-3", "logs", "source"]


def test_agent_that_is_not_supported_yet_is_a_problem_and_not_a_fault(tmp_path):
    text = BASE + "sources: [{agent: kimi}, {agent: pi}]"
    config = load(tmp_path, text, agents=frozenset({"pi"}))
    assert [source.name for source in config.sources] == ["pi"]
    assert [(problem.code, problem.where) for problem in config.problems] == [("agent_unsupported", "sources[0]")]


def test_agent_from_outside_the_known_list_is_taken_if_it_can_be_read(tmp_path):
    config = load(tmp_path, BASE + "sources: [{agent: newcomer}]", agents=frozenset({"newcomer"}))
    assert config.sources[0].agent == "newcomer"


TWO = "bases:\n- {{name: a, files: [{}], relations: r1}}\n- {{name: b, files: [{}], relations: r2}}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [("kb/a.md", "kb/*.md"), ("kb/*.md", "link/*.md"), ("kb/a.md", "hard.md"), ("new/*.md", "./new/*.md")],
)
def test_real_file_in_two_bases_is_a_fault(tmp_path, one, other):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/a.md").write_text("- **A title**\n")
    (tmp_path / "link").symlink_to("kb")
    (tmp_path / "hard.md").hardlink_to(tmp_path / "kb/a.md")
    found = faults(tmp_path, TWO.format(one, other))
    assert len(found) == 1
    assert found[0].startswith("3: bases[1].files: ")
    assert "is also in base a" in found[0]


def test_file_matched_twice_in_one_base_is_no_fault(tmp_path):
    (tmp_path / "a.md").touch()
    assert load(tmp_path, "bases: [{name: a, files: [a.md, '*.md']}]").bases[0].name == "a"


def test_two_bases_with_one_relations_file_are_a_fault(tmp_path):
    found = faults(tmp_path, "bases:\n- {name: a, files: [kb/a.md]}\n- {name: b, files: [kb/b.md]}\n")
    assert len(found) == 1
    assert found[0].startswith("3: bases[1].relations: ")


def test_two_bases_of_one_name_are_a_fault(tmp_path):
    assert faults(tmp_path, TWO.format("x/*.md", "y/*.md").replace("name: b", "name: a")) == [
        "3: bases[1].name: another base is named a; rename one"
    ]


def test_pattern_that_is_a_folder_is_a_fault(tmp_path):
    (tmp_path / "kb").mkdir()
    assert faults(tmp_path, "bases: [{name: a, files: [kb]}]")[0].startswith("1: bases[0].files[0]: is a folder;")


@pytest.mark.parametrize(
    ("pattern", "source", "inside"),
    [
        ("kb/*.md", "path: kb, format: text", True),
        ("kb/*.md", "path: kb/logs, format: text", True),
        ("kb/*.md", "agent: pi, root: kb/deep/er", True),
        ("kb/*.md", "path: link/logs, format: text", True),
        ("link/*.md", "path: kb/logs, format: text", True),
        ("kb/**/*.md", "path: kb/a/b, format: text", True),
        ("p/*/memory/*.md", "path: p/x/memory/logs, format: text", True),
        ("p/*/memory/*.md", "agent: claude-code, root: p", False),
        ("kb/*.md", "path: kb2, format: text", False),
        ("kb/*.md", "path: logs, format: text", False),
        ("kb/*.md", "agent: aider, root: .", False),
        ("*.md", "path: logs, format: text", False),
        ("*.md", "agent: aider, root: .", False),
        ("*.md", "path: ., format: text", True),
        ("lessons.md", "path: logs, format: text", False),
        ("lessons.md", "path: ., format: text", True),
        ("dot/CLAUDE.md", "agent: claude-code, root: dot", False),
    ],
)
def test_source_inside_a_base_is_a_fault(tmp_path, pattern, source, inside):
    (tmp_path / "kb").mkdir()
    (tmp_path / "link").symlink_to("kb")
    text = f"bases: [{{name: b, files: ['{pattern}']}}]\nsources: [{{{source}}}]\n"
    if inside:
        found = faults(tmp_path, text)
        assert len(found) == 1
        assert "lies inside base b" in found[0]
    else:
        assert len(load(tmp_path, text).sources) == 1


def test_default_root_of_an_agent_inside_a_base_is_a_fault(tmp_path):
    text = f"bases: [{{name: b, files: ['{tmp_path}/dot/**/*.md']}}]\nsources: [{{agent: pi}}]\n"
    found = faults(tmp_path, text, roots_of=lambda agent: [str(tmp_path / "dot" / agent)])
    assert "lies inside base b" in found[0]


@given(st.binary(max_size=400))
def test_any_bytes_give_a_config_or_a_usage_error(data):
    try:
        config = parse_config(data, Path("/nowhere/config.yaml"))
    except UsageError as error:
        assert str(error).startswith("/nowhere/config.yaml:")
    else:
        assert config.bases


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates()
_names = st.sampled_from(
    ["bases", "sources", "match", "decay", "name", "files", "agent", "format", "path", "at", "types", "stages", "graph"]
)
_keys = _names | st.text(max_size=5)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4)
)


@given(st.dictionaries(_names, _values, max_size=5))
def test_any_yaml_gives_a_config_or_a_usage_error(value):
    data = yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
    try:
        config = parse_config(data, Path("/nowhere/config.yaml"))
    except UsageError as error:
        assert str(error).startswith("/nowhere/config.yaml:")
    else:
        assert config.bases


def test_fifo_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UsageError, match="is not a regular file"):
        load_config(tmp_path / "config.yaml")


def test_absent_and_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="is not a regular file"):
        load_config(tmp_path)


def test_example_is_the_built_in_configuration(tmp_path):
    config = parse_config(EXAMPLE.read_bytes(), tmp_path / "config.yaml")
    built_in = default_config(tmp_path)
    assert msgspec.structs.replace(config, path=None, digest=built_in.digest) == built_in


def _known_keys(struct: type[msgspec.Struct]) -> dict[str, set[str]]:
    """Return section → its keys."""
    keys: dict[str, set[str]] = {}
    for field in msgspec.structs.fields(struct):
        inner = _structs(field.type)
        keys[field.name] = {key for one in inner for key in one.__struct_fields__}
        for one in inner:
            keys |= {name: nested for name, nested in _known_keys(one).items() if nested}
    return keys


def _structs(kind: object) -> list[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in getattr(kind, "__args__", ()) for struct in _structs(part)]


def test_example_shows_every_key_with_a_sentence():
    text = EXAMPLE.read_text()
    shown = text + "".join(line.lstrip().removeprefix("#") + "\n" for line in text.splitlines())
    for section, keys in _known_keys(Document).items():
        assert f"\n{section}:" in shown or f" {section}:" in shown, section
        for key in keys:
            assert f" {key}:" in shown or f"{{{key}:" in shown, f"{section}.{key}"
    document = yaml.safe_load(text)
    for section in ("match", "decay", "write", "scan", "evidence"):
        assert set(document[section]) == _known_keys(Document)[section]
        for key in document[section]:
            line = next(line for line in text.splitlines() if line.startswith(f"  {key}:"))
            assert len(line.partition("#")[2].split()) >= 3, line


def test_templates_are_made_once_and_never_over_what_is_there(tmp_path):
    folder = tmp_path / "data"
    assert write_templates(folder, date(2026, 6, 30)) == [folder / "knowledge/lessons.md", folder / "logs"]
    assert list((folder / "logs").iterdir()) == []
    (folder / "knowledge/lessons.md").write_text("mine")
    assert write_templates(folder, date(2026, 6, 30)) == []
    assert (folder / "knowledge/lessons.md").read_text() == "mine"


def test_template_does_not_come_back_after_its_owner_took_it_away(tmp_path):
    write_templates(tmp_path, date(2026, 6, 30))
    (tmp_path / "knowledge/lessons.md").unlink()
    assert write_templates(tmp_path, date(2026, 6, 30)) == []


def test_template_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(FileUnwritable):
        write_templates(tmp_path / "data", date(2026, 6, 30))


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_config_is_found_by_option_then_variable_then_home(home):
    own = data_dir().parent.parent.parent / ".config/kbd/config.yaml" if os.uname().sysname == "Linux" else None
    assert find_config("a.yaml", {"KBD_CONFIG": "b.yaml"}) == Path("a.yaml")
    assert find_config(None, {"KBD_CONFIG": "~/b.yaml"}) == home / "b.yaml"
    assert find_config(None, {"KBD_CONFIG": ""}) is None
    if own is not None:
        own.parent.mkdir(parents=True)
        own.touch()
        assert find_config(None, {}) == own


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_state_directory_is_made_for_its_owner_only(home):
    assert state_dir(None, {"KBD_STATE_DIR": str(home / "a/state")}) == home / "a/state"
    assert mode(home / "a/state") == 0o700
    assert state_dir(str(home / "b"), {"KBD_STATE_DIR": "unused"}) == home / "b"
    assert home in state_dir(None, {}).parents


def test_empty_state_directory_is_closed_and_a_folder_of_other_things_is_left(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "empty").mkdir(mode=0o755)
    assert mode(state_dir(str(tmp_path / "empty"), {})) == 0o700
    assert mode(state_dir(str(tmp_path), {})) == 0o755


def test_state_directory_with_a_ledger_is_closed_to_readers(tmp_path):
    (tmp_path / "ledger.db").touch()
    tmp_path.chmod(0o755)
    assert mode(state_dir(str(tmp_path), {})) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_state_directory_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(UsageError, match="another user"):
        state_dir(str(tmp_path), {})


def test_state_directory_that_others_may_write_into_is_refused(tmp_path):
    (tmp_path / "file").touch()
    tmp_path.chmod(0o1777)
    with pytest.raises(UsageError, match="others may write"):
        state_dir(str(tmp_path), {})
    assert mode(tmp_path) == 0o1777


def test_state_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be the state directory"):
        state_dir(str(tmp_path / "file"), {})
