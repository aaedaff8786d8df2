"""Tool inputs of any agent: what was written, copied, touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import BREAK, TouchMode
from kbd.core.toolinput import tool_call

T = "Backoff must be capped"
PATCH = f"*** Begin Patch\n*** Update File: src/net.py\n@@\n Context\n-Old\n+# {T}\n*** End Patch\n"

WRITTEN = [
    ("Edit", {"file_path": "a.py", "old_string": "Old", "new_string": T}),
    ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "Old", "new_string": T}]}),
    ("edit", {"path": "a.py", "edits": [{"oldText": "Old", "newText": T}]}),
    ("search_replace", {"file_path": "a.py", "old_string": "Old", "new_string": T}),
    ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a.py", "old_str": "Old", "new_str": T}),
    ("str_replace_based_edit_tool", {"command": "create", "path": "a.py", "file_text": T}),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": T}),
    ("Write", {"file_path": "a.py", "content": T}),
    ("replace_in_file", {"path": "a.py", "diff": f"<<<<<<< SEARCH\nOld\n=======\n{T}\n>>>>>>> REPLACE"}),
    ("apply_patch", {"input": PATCH}),
    ("apply_patch", {"patch": PATCH}),
    ("shell", {"command": ["apply_patch", PATCH]}),
    ("Bash", {"command": f"git commit -m '{T}'", "description": "commit"}),
    ("exec_command", {"cmd": f"git commit -m '{T}'", "workdir": "/w"}),
    ("shell", {"command": ["bash", "-lc", f"echo '{T}' > x"]}),
    ("Task", {"prompt": T, "description": "x"}),
    ("TodoWrite", {"todos": [{"content": T, "status": "pending"}]}),
    ("update_todo_list", {"todos": T}),
    ("ExitPlanMode", {"plan": T}),
    ("update_plan", {"plan": [{"step": T, "status": "pending"}]}),
    ("AskUserQuestion", {"questions": [{"question": T}]}),
    ("mcp__github__create_pull_request", {"title": "x", "body": T}),
    ("send_message", {"to": "x", "text": T}),
    ("never_heard_of", {"a": {"b": [{"c": T}]}}),
    ("exec", {"input": f"// {T}\nawait tools.exec_command({{cmd: 'ls'}})"}),
    ("exec", {"input": f"// Patch\nawait tools.apply_patch(`{PATCH}`);"}),
    ("exec", {"input": 'const p = "' + PATCH.replace("\n", "\\n") + '";\npatch(p);'}),
    ("write_stdin", {"chars": T}),
    ("run_command", {"CommandLine": f"git commit -m '{T}'", "Cwd": "/w"}),
    ("replace_file_content", {"TargetFile": "a.py", "TargetContent": "Old", "ReplacementContent": T}),
    ("process", {"action": "write", "sessionId": "a", "data": T}),
    ("StructuredOutput", {"summary": T}),
    ("report_status", {"text": T}),
    ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a", "old_str": "Old", "new_str": T}),
]

LOOKED_UP = [
    ("Read", {"file_path": T}),
    ("Grep", {"pattern": T, "path": "/w"}),
    ("Glob", {"pattern": T}),
    ("LS", {"path": T}),
    ("WebSearch", {"query": T}),
    ("WebFetch", {"url": "u", "prompt": T}),
    ("memory_search", {"query": T}),
    ("memory_get", {"path": "MEMORY.md", "from": T}),
    ("sessions_history", {"sessionKey": T}),
    ("mcp__github__search_issues", {"q": T}),
    ("mcp__x__list_things", {"filter": T}),
    ("codebase_search", {"query": T, "explanation": T}),
    ("ToolSearch", {"query": T}),
    ("some_new_tool", {"query": T, "pattern": T}),
    ("str_replace_based_edit_tool", {"command": "view", "path": T}),
    ("Bash", {"command": f"rg '{T}'", "description": f"Search for {T}"}),
    ("shell", {"command": ["rg", T, "."]}),
    ("run_terminal_cmd", {"command": f"git log --grep '{T}'"}),
    ("exec", {"input": f"await tools.exec_command({{cmd: \"rg '{T}' .\"}})"}),
    (
        "exec",
        {"input": f'p = "*** Begin Patch\\n*** Update File: a\\n@@\\n {T}\\n-x\\n+y\\n*** End Patch";\npatch(p);'},
    ),
    (
        "exec",
        {"input": f"run({{cmd: 'rg \"{T}\"'}});\np(`*** Begin Patch\n*** Update File: a\n@@\n-{T}\n*** End Patch`)"},
    ),
    ("run_command", {"CommandLine": f"grep -rn '{T}' .", "Cwd": "/w"}),
    ("replace_file_content", {"TargetFile": "a.py", "TargetContent": T, "ReplacementContent": "x"}),
    ("process", {"action": "poll", "sessionId": T}),
    ("AgentOutputTool", {"agentId": T}),
    ("mcp__context7__resolve-library-id", {"libraryName": T}),
    ("mcp__git__git_diff", {"target": T}),
    ("mcp__kbd__search", {"query": T}),
    ("mcp__kbd__add", {"title": T}),
    ("kbd_add", {"title": T}),
    ("Bash", {"command": f"kbd add '{T}'", "description": f"save {T}"}),
    ("Edit", {"file_path": "a.py", "old_string": T, "new_string": "x"}),
    ("apply_patch", {"input": f"*** Begin Patch\n*** Update File: a\n@@\n {T}\n-{T}\n+x\n*** End Patch"}),
]


@pytest.mark.parametrize(("name", "values"), WRITTEN)
def test_what_the_agent_wrote_counts(name: str, values: dict[str, object]) -> None:
    call = tool_call(name, values)
    assert T in call.written
    assert "Old" not in call.written


@pytest.mark.parametrize(("name", "values"), LOOKED_UP)
def test_what_it_looked_up_or_copied_does_not(name: str, values: dict[str, object]) -> None:
    assert T not in tool_call(name, values).written


@pytest.mark.parametrize(
    ("name", "values", "path", "mode"),
    [
        ("Read", {"file_path": "/a/b.md"}, "/a/b.md", TouchMode.READ),
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "a.py", TouchMode.WRITE),
        ("Write", {"file_path": "a.py", "content": "x"}, "a.py", TouchMode.WRITE),
        ("Grep", {"pattern": "x", "path": "/w"}, "/w", TouchMode.MENTION),
        ("read_many_files", {"paths": ["a", "b"]}, "b", TouchMode.READ),
        ("apply_patch", {"input": PATCH}, "src/net.py", TouchMode.WRITE),
        ("exec_command", {"cmd": "cat a.md", "workdir": "/w"}, "/w/a.md", TouchMode.READ),
        ("move_file", {"source": "a/b.md", "destination": "c.md"}, "c.md", TouchMode.WRITE),
        ("odd", {"filePath": "x"}, "x", TouchMode.MENTION),
    ],
)
def test_files_named_by_the_input_are_touched(name: str, values: dict[str, object], path: str, mode: TouchMode) -> None:
    assert {touch.path: touch.mode for touch in tool_call(name, values).touched}[path] is mode


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Write", {"file_path": "a", "content": "x"}, True),
        ("create_file", {"path": "a", "file_text": "x"}, True),
        ("mcp__fs__write_file", {"path": "a", "content": "x"}, True),
        ("append_file", {"path": "a", "content": "x"}, False),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, False),
        ("TodoWrite", {"todos": [{"content": "x"}]}, False),
        ("Bash", {"command": "cat > a <<E\nx\nE"}, False),
    ],
)
def test_a_whole_file_is_known_as_such(name: str, values: dict[str, object], expected: bool) -> None:
    assert tool_call(name, values).whole_file is expected


def test_old_halves_are_kept_as_copied() -> None:
    assert tool_call("Edit", {"file_path": "a", "old_string": "Old", "new_string": "n"}).copied == "Old"


@pytest.mark.parametrize("name", ["mcp__kbd__add", "kbd_search", "kbd.add", "mcp__plugin_kbd_kbd__add"])
def test_own_tools_are_marked_and_write_nothing(name: str) -> None:
    call = tool_call(name, {"title": T})
    assert call.own
    assert call.written == ""
    assert T in call.copied


def test_tools_that_only_sound_like_it_are_not_own() -> None:
    assert not tool_call("kbdx_add", {"title": T}).own
    assert not tool_call("set_kbd_layout", {"title": T}).own


KEYS = st.sampled_from(["command", "cmd", "path", "old_string", "new_string", "search", "replace", "input", "x"])
LEAVES = st.none() | st.integers() | st.text(max_size=9)
JSON = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=9)


@given(st.sampled_from(["Bash", "Edit", "Read", "exec", "x", ""]), st.dictionaries(KEYS, JSON, max_size=4))
def test_any_input_has_a_reading(name: str, values: dict[str, object]) -> None:
    call = tool_call(name, values)
    assert call.name == name


TEXTS = {
    "a command and its description": ("Bash", {"command": "echo one", "description": "two"}, False),
    "commands of a list": ("run_commands", {"commands": ["echo one", "two"]}, False),
    "segments of a command": ("Bash", {"command": "echo one; two"}, False),
    "a command and a later comment": ("Bash", {"command": "echo one\n# two"}, False),
    "comments apart": ("Bash", {"command": "# one\nls\n# two"}, False),
    "items of a list": ("TodoWrite", {"todos": [{"content": "one"}, {"content": "two"}]}, False),
    "edits": ("MultiEdit", {"edits": [{"old_string": "a", "new_string": "one"}, {"new_string": "two"}]}, False),
    "values of a list": ("ask", {"options": ["one", "two"]}, False),
    "lines of one comment": ("Bash", {"command": "# one\n  # two\nls"}, True),
    "a list of lines": ("insert_lines", {"content": ["one", "two"]}, True),
    "a notebook's cell": ("edit_cell", {"cell": ["one\n", "two"]}, True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_fields_of_a_call_are_no_one_text(name: str) -> None:
    tool, given_input, are_one = TEXTS[name]
    written = tool_call(tool, given_input).written
    assert ("one\ntwo" in written) is are_one
    assert (BREAK in written) is not are_one
