"""Text logs: times of lines, paragraphs as messages, and how they grow."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from source_lines import NOON, kinds, messages, run

from kbd.core.model import Message, Record
from kbd.sources.contract import FileKind
from kbd.sources.linetime import leading_time
from kbd.sources.text import FORMAT, MAX_PARAGRAPH_CHARS, MAX_PARAGRAPH_LINES, text_session

EAST = timezone(timedelta(hours=8))


def paragraphs(text: str | bytes, **options: object) -> list[Message]:
    data = text if isinstance(text, bytes) else text.encode()
    return messages(run(FORMAT, "agent.log", data.split(b"\n"), **options))


def shown(found: list[Message]) -> list[str]:
    return [message.blocks[0].text for message in found]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2026-06-10 x", "2026-06-10T00:00"),
        ("2026-06-10: x", "2026-06-10T00:00"),
        ("[2026-06-10] x", "2026-06-10T00:00"),
        ("## 2026-06-10", "2026-06-10T00:00"),
        ("2026-06-10 09:00 x", "2026-06-10T01:00"),
        ("2026-06-10, 09:00 x", "2026-06-10T01:00"),
        ("2026-06-10 09:00:01,250 INFO x", "2026-06-10T01:00:01.250"),
        ("[2026-06-10 09:00:01] x", "2026-06-10T01:00:01"),
        ("2026-06-10T09:00:00Z x", "2026-06-10T09:00"),
        ("2026-06-10T09:00:00.123456789+02:00 x", "2026-06-10T07:00:00.123456"),
        ("2026-06-10 09:00 -0700 x", "2026-06-10T16:00"),
        ("2026-06-10 09:00 UTC x", "2026-06-10T09:00"),
        ("2026-06-10T09:00-07 x", "2026-06-10T16:00"),
        ("2026-06-10 09:00 -50 things", "2026-06-10T01:00"),
        ("2026-06-10 25:00 x", "2026-06-10T00:00"),
        ("09:00 x", "2026-01-02T01:00"),
        ("[09:00:30] x", "2026-01-02T01:00:30"),
        ("(09:00) x", "2026-01-02T01:00"),
        ("09:00-10:00 x", "2026-01-02T01:00"),
        ("07:00 x", "2026-01-01T23:00"),
    ],
)
def test_a_leading_time_is_read(line: str, time: str) -> None:
    found = leading_time(line)
    assert found is not None
    assert found.at(utc("2026-01-02T00:00").date(), EAST) == utc(time)


@pytest.mark.parametrize(
    "line",
    ["", "x 09:00", "25:00 x", "12:34:56:78", "12:30pm", "9:00 x", "2026-13-01 x", "2026-02-30", "2026-06-10T9",
     "0000-01-01", "- 2026-06-10 x", "20260610 x", "2026-06-10_x", "1.2026-06-10"],
)  # fmt: skip
def test_what_only_looks_like_a_time_is_none(line: str) -> None:
    assert leading_time(line) is None


def test_paragraphs_end_at_blank_lines_and_at_lines_with_a_time() -> None:
    found = paragraphs("one\ntwo\n\n  \nthree\n2026-06-10 four\nfive\n2026-06-11 six")
    assert shown(found) == ["one\ntwo", "three", "2026-06-10 four\nfive", "2026-06-11 six"]


def test_lines_know_where_they_begin() -> None:
    (message,) = paragraphs("one\n\u00fcber\nthree")
    assert [message.blocks[0].text[line.start :][:3] for line in message.lines] == ["one", "\u00fcbe", "thr"]


def test_a_line_without_a_time_has_that_of_the_nearest_line_above() -> None:
    found = paragraphs("2026-06-10T09:00Z a\nb\n\nc\n\n10:00 d\ne")
    assert [line.at for message in found for line in message.lines] == [
        utc(f"2026-06-10T{clock}") for clock in ("09:00", "09:00", "09:00", "10:00", "10:00")
    ]
    assert not any(line.observed for message in found for line in message.lines)


def test_a_time_of_day_takes_the_nearest_date_above_else_the_observed_day() -> None:
    found = paragraphs("23:00 a\n2026-03-01 b\n22:00 c", tz=EAST)
    assert [(message.at, message.lines[0].observed) for message in found] == [
        (utc("2026-06-10T15:00"), True),
        (utc("2026-03-01T00:00"), False),
        (utc("2026-03-01T14:00"), False),
    ]


def test_lines_without_any_time_keep_the_time_each_was_first_read() -> None:
    days = [NOON + timedelta(days=day) for day in range(3)]
    (message,) = paragraphs("a\nb\nc", observed=days, stops=frozenset([0, 1]))
    assert [(line.at, line.observed) for line in message.lines] == [(day, True) for day in days]


def test_the_open_paragraph_comes_again_under_the_same_id() -> None:
    decoder = FORMAT.decoder("a.log", None)
    decoder.feed(Record(0, b"Backoff must"), NOON)
    (first,) = decoder.flush().messages
    decoder.feed(Record(13, b"be capped"), NOON)
    (second,) = decoder.flush().messages
    (closed,) = decoder.feed(Record(23, b""), NOON).messages
    assert first.record_id == second.record_id == closed.record_id
    assert (second.blocks[0].text, closed) == ("Backoff must\nbe capped", second)
    assert decoder.flush().messages == ()


def test_a_line_delivered_again_takes_the_place_of_its_first_piece() -> None:
    decoder = FORMAT.decoder("a.log", None)
    for offset, data in [(0, b"one"), (4, b"2026-06-1"), (4, b"2026-06-10 two"), (4, b"2026-06-10 two three")]:
        decoded = decoder.feed(Record(offset, data), NOON)
    assert shown(list(decoder.flush().messages)) == ["2026-06-10 two three"]
    assert decoded.messages == ()


def test_dated_paragraphs_are_known_by_time_and_words_others_by_place() -> None:
    head = "2026-06-10T09:00Z a\n\nb\n\nb"
    moved = [message.record_id for message in paragraphs("x\n" + head)][1:]
    assert moved == [message.record_id for message in paragraphs(head)]
    assert len(set(moved)) == 3
    assert [message.record_id for message in paragraphs("a\n\nb\n\n09:00 c")] == ["o:0", "o:3", "o:6"]


def test_equal_lines_of_one_time_are_two() -> None:
    ids = [message.record_id for message in paragraphs("2026-06-10T09:00Z retry\n2026-06-10T09:00Z retry")]
    assert len(set(ids)) == 2


def test_long_paragraphs_are_cut() -> None:
    found = paragraphs("x\n" * (MAX_PARAGRAPH_LINES + 1))
    assert [len(message.lines) for message in found] == [MAX_PARAGRAPH_LINES, 1]
    assert len(paragraphs(("y" * 70_000 + "\n") * 5)) == 2
    decoder = FORMAT.decoder("a.log", None)
    decoder.feed(Record(0, b"z" * (2 * MAX_PARAGRAPH_CHARS)), NOON)
    assert len(decoder.state()) < 1000


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1;32mgreen\x1b[0m \x1b]0;title\x07x", "green x"),
        (b"10%\r50%\r100% done\r", "100% done"),
        (b"\xef\xbb\xbfbom", "bom"),
        (b"bad \xff utf", "bad \ufffd utf"),
        (b"\0\0\0after a hole", "after a hole"),
        (b"a\xe2\x80\xa8b\x0cc", "a\u2028b\x0cc"),
    ],
)
def test_a_line_is_what_a_terminal_leaves(data: bytes, text: str) -> None:
    assert shown(paragraphs(data)) == [text]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_mark_is_read(encoding: str) -> None:
    text = "09:00 eins\nzwei 不要\nx \u0a0a \u410a 以上 \u0a41 x"
    data = f"\ufeff{text}\n\ndrei\n".replace("\n", "\r\n").encode(encoding)
    assert shown(paragraphs(data, stops=frozenset(range(0, 20, 2)))) == [text, "drei"]


def test_each_line_is_one_record() -> None:
    assert kinds(run(FORMAT, "a.log", [b"a", b"", b"b"])) == ["message", "recognised", "message"]


@pytest.mark.parametrize(
    ("relpath", "session"),
    [
        ("agent.log", "agent.log"),
        ("a/agent.log.1", "a/agent.log"),
        ("agent.log.12.gz", "agent.log"),
        ("agent.log-20260101", "agent.log"),
        ("agent.log-20260101.gz", "agent.log"),
        ("agent.log.2026-01-01", "agent.log"),
        ("agent.log.gz", "agent.log"),
        ("2026-01-01.md", "2026-01-01.md"),
        ("20260101", "20260101"),
    ],
)
def test_a_session_is_the_path_without_rotation(relpath: str, session: str) -> None:
    assert text_session(relpath) == session


@pytest.mark.parametrize(
    ("relpath", "kind"),
    [
        ("agent.log", FileKind.LINES),
        ("README", FileKind.LINES),
        ("notes.md", FileKind.LINES),
        ("agent.log.1.gz", FileKind.GZIP),
        ("logs.tar.gz", None),
        (".hidden", None),
        (".git/x.log", None),
        ("a~", None),
        ("a.swp", None),
        ("a.log.tmp", None),
        ("notes.kbd-conflict.md", None),
        ("notes.2.kbd-conflict", None),
        ("#a#", None),
        ("shot.PNG", None),
        ("state.db-wal", None),
    ],
)
def test_regular_text_files_are_taken(relpath: str, kind: FileKind | None) -> None:
    assert FORMAT.file_kind(relpath) is kind
