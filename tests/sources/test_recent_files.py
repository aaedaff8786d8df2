"""Which files a session touched in the ten minutes before a record."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from source_lines import NOON

from kbd.core.model import Author, Block, ToolCall, Touch, TouchMode
from kbd.sources.memory import RECENT, RECENT_FILES, RecentFiles

# Seconds from one record to the next, mostly ahead; the file touched; whether reading stops and goes on there.
steps = st.lists(st.tuples(st.sampled_from([0, 1, 60, 400, -30, -700]), st.integers(0, 40), st.booleans()), max_size=60)


def touching(path: str) -> Block:
    call = ToolCall("Read", "", touched=(Touch(path, TouchMode.READ),))
    return Block(Author.AGENT_TOOL_INPUT, "", None, call)


@given(steps)
def test_the_newest_files_are_found_in_whatever_order_records_come(found: list[tuple[int, int, bool]]) -> None:
    files, last_touch = RecentFiles(), dict[str, datetime]()
    now = NOON
    for seconds, number, stops in found:
        now += timedelta(seconds=seconds)
        path = f"/w/{number}"
        files.note([touching(path)], "/w", now)
        last_touch.pop(path, None)
        last_touch[path] = now
        last_touch = dict([*last_touch.items()][-32:])
        files = RecentFiles(files.saved()) if stops else files
        near = [(at, path) for path, at in last_touch.items() if now - RECENT <= at <= now]
        near.sort(key=lambda one: one[0], reverse=True)
        assert [touch.path for touch in files.before(now)] == [path for _, path in near[:RECENT_FILES]]
