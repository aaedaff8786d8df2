"""Aider's Markdown history and its traps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_lines import NOON, kinds, messages, records, run

from kbd.core.model import Author, Message, Record, TouchMode
from kbd.sources.aider import FORMAT, MAX_REPLY_LINES
from kbd.sources.contract import FileKind

PATH = ".aider.chat.history.md"
HEADER = "# aider chat started at 2026-06-10 12:00:00"


def history(text: str, **options: object) -> list[Message]:
    return messages(run(FORMAT, PATH, [line.encode() for line in text.split("\n")], **options))  # type: ignore[arg-type]


def prose(text: str) -> list[str]:
    found = (block for message in history(text) for block in message.blocks)
    return [block.text.strip() for block in found if block.author is Author.AGENT_TEXT]


def edits(text: str) -> list[tuple[str, str, list[str]]]:
    calls = [block.call for message in history(text) for block in message.blocks if block.call]
    return [(call.written, call.copied, [touch.path for touch in call.touched]) for call in calls]


def chat(body: str) -> str:
    return f"\n{HEADER}\n\n> Aider v0.86.1  \n\n#### cap it  \n\n{body}\n\n> Tokens: 5k sent.  \n"


def test_a_reply_is_what_is_neither_of_the_user_nor_of_the_program() -> None:
    (message,) = history(chat("Per R I change it.\n\nAnd more."))
    assert message.blocks[0].text.strip() == "Per R I change it.\n\nAnd more."
    assert message.at == NOON


@pytest.mark.parametrize(
    "body",
    [
        "#### T  ",
        "#### cap\n#### T",
        "> T  ",
        "> T",
        "####\n>",
        "#### /run pytest  \n\nT\n\n> Add 5 lines? (Y)es/(N)o [Yes]: y  ",
        "#### !ls  \n\nT",
        HEADER,
    ],
)
def test_marked_lines_and_the_output_of_commands_are_not_the_agents(body: str) -> None:
    assert prose(f"{HEADER}\n\n{body}\n") == []


def test_a_command_that_the_model_answers_is_followed_by_a_reply() -> None:
    assert prose(f"{HEADER}\n\n#### /run ls  \n\nT\n\n#### /ask why  \n\nR\n") == ["R"]
    assert prose(f"{HEADER}\n\n#### /run ls  \n\n#### why  \n\nR\n") == ["R"]


def test_what_stands_before_the_first_header_has_no_author() -> None:
    assert prose(f";; -*- mode: markdown -*-\nT\n\n{HEADER}\nR\n") == ["R"]


@pytest.mark.parametrize("quoted", ["> R", "#### R", "# R", "> R  "])
def test_marks_within_a_fence_belong_to_the_agent(quoted: str) -> None:
    assert prose(chat(f"See:\n```text\n{quoted}\n```")) == [f"See:\n{quoted.strip()}"]


def test_a_heading_of_the_agent_is_its_text() -> None:
    assert prose(chat("# R\n\nmore")) == ["# R\n\nmore"]


@pytest.mark.parametrize("left_open", ["```python\nx = 1", "a.py\n<<<<<<< SEARCH\nx = 1"])
def test_a_block_left_open_ends_where_the_user_speaks(left_open: str) -> None:
    text = chat(left_open) + "\n#### T  \n\n> T  \n"
    assert "T" not in "".join(block.text for message in history(text) for block in message.blocks)


def test_a_block_left_open_ends_at_the_next_chat() -> None:
    assert prose(f"{HEADER}\n```\nR\n# aider chat started at 2026-06-11 12:00:00\n#### T\nS\n") == ["R", "S"]


EDIT = "{name}\n```python\n<<<<<<< SEARCH\nold\n> T  \n#### T\n=======\nnew\n>>>>>>> REPLACE\n```"


@pytest.mark.parametrize("name", ["src/a.py", "**src/a.py**", "`src/a.py`:", "### src/a.py"])
def test_the_search_half_is_a_copy_and_the_replace_half_is_written(name: str) -> None:
    assert edits(chat("R\n\n" + EDIT.format(name=name))) == [("new", "old\n> T  \n#### T", ["src/a.py"])]


def test_a_file_named_within_the_fence_is_the_one_that_is_edited() -> None:
    body = "```python\nsrc/a.py\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```"
    assert edits(chat(body)) == [("new", "old", ["src/a.py"])]


def test_several_edits_in_one_fence_are_of_one_file() -> None:
    body = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"
    assert edits(chat(f"src/a.py\n```\n{body}\n\n{body}\n```")) == [("b", "a", ["src/a.py"])] * 2


def test_a_file_written_whole_is_a_tool_input() -> None:
    (message,) = history(chat("R\n\nkb/lessons.md\n```\n- **New**\n- more\n```\n\nS"))
    text, edit = message.blocks
    assert edit.call is not None
    assert (edit.text, edit.call.whole_file, edit.call.touched[0].path) == ("- **New**\n- more", True, "kb/lessons.md")
    assert "New" not in text.text


def test_a_fence_below_a_sentence_is_prose() -> None:
    assert prose(chat("Run this:\n\n```bash\nR\n```")) == ["Run this:\n\nR"]


def test_of_a_diff_only_added_lines_are_written() -> None:
    body = "```diff\n--- a/src/a.py\n+++ b/src/a.py\n@@ ... @@\n context\n-old\n+new\n```"
    (edit,) = edits(chat(body))
    assert (edit[0], edit[2]) == ("new", ["src/a.py"])
    assert "context" in edit[1]


def test_files_that_the_program_names_are_remembered() -> None:
    body = (
        f"{HEADER}\n> Added src/a.py to the chat.  \n> Applied edit to src/b.py  \n> Added src/a.py to the chat  \nR\n"
    )
    (message,) = history(body)
    assert [(touch.path, touch.mode) for touch in message.recent] == [
        ("src/a.py", TouchMode.READ),
        ("src/b.py", TouchMode.WRITE),
    ]


def test_each_start_is_a_session_and_equal_replies_of_one_are_told_apart() -> None:
    text = f"{HEADER}\nR\n\n> x  \n\nR\n# aider chat started at 2026-06-10 13:00:00\nR\n"
    found = history(text)
    assert len({message.native_id for message in found}) == 3
    assert len({message.session for message in found}) == 2


def test_a_reply_that_grows_keeps_its_name() -> None:
    text = chat("R one\nR two\nR three")
    lines = [line.encode() for line in text.split("\n")]
    decoder = FORMAT.decoder(PATH, None)
    names = set()
    for record in records(lines):
        for message in (*decoder.feed(record, NOON).messages, *decoder.flush().messages):
            names.add(message.native_id)
    assert len(names) == 1


def test_an_endless_reply_is_cut_into_bounded_ones() -> None:
    lines = [HEADER.encode(), *[b"R"] * (MAX_REPLY_LINES + 5)]
    assert len(messages(run(FORMAT, PATH, lines))) == 2


MARKDOWN = [
    "",
    "R",
    "> t  ",
    "> q",
    "#### u  ",
    "#### /run x  ",
    "```",
    "```diff",
    "src/a.py",
    HEADER,
    "<<<<<<< SEARCH",
]
MARKDOWN += [
    "=======",
    ">>>>>>> REPLACE",
    "+a",
    "-b",
    "# H",
    "# aider chat started at 2026-13-40 99:00:00",
    "~~~~",
    ">  ",
]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(MARKDOWN) | st.text(max_size=8), max_size=25), st.frozensets(st.integers(0, 24)))
def test_stopping_anywhere_changes_nothing(lines: list[str], stops: frozenset[int]) -> None:
    data = [line.encode("utf-8", "replace").replace(b"\n", b" ") for line in (HEADER, *lines)]
    assert run(FORMAT, PATH, data, stops=stops) == run(FORMAT, PATH, data)
    assert len(kinds(run(FORMAT, PATH, data))) == len(data)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(MARKDOWN) | st.text(max_size=8), max_size=25), st.frozensets(st.integers(0, 24)))
def test_a_line_that_comes_again_longer_is_one_line(lines: list[str], torn: frozenset[int]) -> None:
    data = [line.encode("utf-8", "replace").replace(b"\n", b" ") for line in (HEADER, *lines)]
    decoder = FORMAT.decoder(PATH, None)
    found: list[Message] = []
    for index, record in enumerate(records(data)):
        if index in torn and not record.data.startswith((b"#", b">")):  # half a mark may be another one
            decoder.feed(Record(record.offset, record.data[: len(record.data) // 2]), NOON)
            decoder.flush()
            decoder = FORMAT.decoder(PATH, decoder.state())
        found += decoder.feed(record, NOON).messages
    assert [*found, *decoder.flush().messages] == messages(run(FORMAT, PATH, data))


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=30), max_size=12))
def test_no_bytes_are_too_odd(lines: list[bytes]) -> None:
    for message in messages(run(FORMAT, PATH, [HEADER.encode(), *lines])):
        assert "".join(block.text for block in message.blocks).encode() is not None


@pytest.mark.parametrize(
    ("relpath", "taken"),
    [
        (PATH, True),
        (f"work/app/{PATH}", True),
        ("aider-history.md", True),
        (".aider.input.history", False),
        (".aider.llm.history.md", False),
        ("README.md", False),
        ("HISTORY.md", False),
    ],
)
def test_only_chat_histories_are_taken(relpath: str, taken: bool) -> None:
    assert FORMAT.file_kind(relpath) is (FileKind.LINES if taken else None)
    assert FORMAT.default_roots({}, "/h") == []
