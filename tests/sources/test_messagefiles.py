"""The files that the records of one message read or wrote."""

from kbd.core.model import Author, Block
from kbd.core.toolinput import tool_call
from kbd.sources.messagefiles import REMEMBERED_FILES, REMEMBERED_MESSAGES, MessageFiles


def call(name: str, **given: object) -> list[Block]:
    found = tool_call(name, given)
    return [Block(Author.AGENT_TOOL_INPUT, found.written, None, found)]


def test_a_record_knows_the_files_of_earlier_records_of_its_message() -> None:
    files = MessageFiles()
    reads = [files.take("m", call("Read", path=name), "/w") for name in ("a.py", "/x/b.py", "a.py")]
    assert reads == [(), ("/w/a.py",), ("/w/a.py", "/x/b.py")]
    assert files.take("n", call("Read", path="c.py"), "/w") == files.take(None, call("Read", path="c.py"), "/w") == ()


def test_what_is_only_named_or_searched_is_not_touched() -> None:
    files = MessageFiles()
    files.take("m", call("Grep", pattern="x", path="src/a.py"), "/w")
    files.take("m", call("Bash", command="kbd show a.md"), "/w")
    assert files.take("m", [], "/w") == ()


def test_it_goes_on_from_what_was_saved_and_stays_small() -> None:
    files = MessageFiles()
    for number in range(3 * REMEMBERED_FILES):
        files.take("m", call("Read", path=f"{number}.py"), "/w")
    for number in range(REMEMBERED_MESSAGES - 1):
        files.take(f"n{number}", call("Read", path="a.py"), "/w")
    kept = MessageFiles(files.saved())
    assert len(kept.take("m", [], None)) == REMEMBERED_FILES
    kept.take("newest", call("Read", path="a.py"), "/w")
    assert kept.take("n0", [], None) == ()
    assert len(kept.saved()) == REMEMBERED_MESSAGES
