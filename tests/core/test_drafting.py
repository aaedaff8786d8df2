"""A new entry comes in clean, or not at all."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.drafting import draft, inserted, namesake, refuse_secrets
from kbd.core.entries import parse
from kbd.core.headline import DEFAULT_TYPES
from kbd.core.normal import normalise
from kbd.errors import Refused

DAY = date(2026, 6, 11)
FILE = b"""# Lessons

## Pitfalls

- [pitfall] **Lock fd leaked on exception path** - x (2026-05-19)
  <!-- ref:1 | last:none | decay:active -->

## Decisions

- [decision] **Chose SQLite over a server** - y
"""


def put(data, title="Retry only what is idempotent", text="a second POST charges twice", type_="pitfall", section=None):
    return inserted(data, draft(type_, title, text), section, DAY, DEFAULT_TYPES, "⚠️")


def test_entry_is_tagged_dated_and_stands_beside_its_like():
    after, entry = put(FILE)
    assert after == FILE.replace(
        b"decay:active -->\n",
        b"decay:active -->\n"
        + "- [pitfall] **Retry only what is idempotent** — a second POST charges twice (2026-06-11)\n".encode(),
    )
    assert (entry.type, entry.created, entry.section) == ("pitfall", DAY, "Lessons / Pitfalls")


@pytest.mark.parametrize(
    ("wanted", "section"),
    [
        ("Decisions", "Lessons / Decisions"),
        ("decisions", "Lessons / Decisions"),
        ("Lessons / Pitfalls", "Lessons / Pitfalls"),
        ("## Pitfalls", "Lessons / Pitfalls"),
        ("Tooling", "Lessons / Tooling"),
        ("Tooling / CI", "Lessons / Tooling / CI"),
        ("Lessons", "Lessons"),
    ],
)
def test_section_is_found_by_its_end_or_made_below_the_title_of_the_file(wanted, section):
    assert put(FILE, section=wanted)[1].section == section


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# Lessons\n",
        b"text\n",
        b"\xef\xbb\xbf# L\r\n\r\n- **Some old entry** x\r\n",
        b"# L\n\n- **Some old entry** x",
    ],
)
def test_any_file_takes_an_entry_and_keeps_its_bytes(data):
    after, entry = put(data)
    assert [e.norm for e in parse(after).entries][-1] == entry.norm
    rest = after[: entry.block.start] + after[entry.block.end :]
    assert rest.replace(b"\r", b"").replace(b"\n", b"") == data.replace(b"\r", b"").replace(b"\n", b"")
    assert after.count(b"\r\n") in (0, after.count(b"\n"))


def test_lines_and_code_stay_within_the_entry():
    after, entry = put(FILE, text="first\n\nsecond\n- a list\n```\n# no heading\n```")
    assert entry.created == DAY
    assert len(parse(after).entries) == 3
    assert b"  # no heading\n  ```\n  (2026-06-11)\n" in after


def test_a_date_of_its_own_does_not_become_the_day_it_was_made():
    assert put(FILE, text="since the release of (2019-01-01)")[1].created == DAY


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("short", ""),
        ("", "text"),
        ("   ", ""),
        ("2026-01-01", ""),
        ("[pitfall] Tagged once more", ""),
        ("A title -->with a comment's end", ""),
        ("A good title of its own", "<!-- ref:99 | last:2026-01-01 | decay:active -->"),
        ("A good title of its own", "an open fence\n```\nnever closed"),
        ("A title with an \x1b[31mescape", ""),
        ("A good title of its own", "a bell\x07"),
        ("t" * 201, ""),
        ("A good title of its own", "x" * 10_001),
    ],
)
def test_words_that_would_not_come_back_as_one_clean_entry_are_refused(title, text):
    with pytest.raises(Refused):
        put(FILE + b"\n- **An entry that stands after it** z\n", title, text, section="Pitfalls")


@given(
    st.text(alphabet="abc XY*`[]()-#>:.!0123\n\t<—、中", min_size=8, max_size=60),
    st.text(alphabet="abc *`[]()-#>|~:.!+0123\n\t<—中", max_size=120),
    st.sampled_from([b"", FILE, FILE.replace(b"\n", b"\r\n"), b"text\n```\nopen\n"]),
)
def test_an_entry_comes_back_as_it_was_meant_and_no_other_changes(title, text, data):
    try:
        after, entry = put(data, title, text)
    except Refused:
        return
    before = parse(data).entries
    others = [e for e in parse(after).entries if e.norm != entry.norm]
    assert [(e.norm, e.meta, e.body, e.section) for e in others] == [
        (e.norm, e.meta, e.body, e.section) for e in before
    ]
    assert (entry.norm, entry.created, entry.meta) == (normalise(" ".join(title.split()).rstrip(":.：。 ")), DAY, None)


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("Lock fd leaked on exception path", "Lock fd leaked on exception path"),
        ("Lock fd leaks on the exception path", "Lock fd leaked on exception path"),
        ("On exception path lock fd leaked", "Lock fd leaked on exception path"),
        ("缓存一定必须要有上限值", "缓存一定必须有上限值"),
    ],
)
def test_near_same_title_is_told(title, known):
    assert namesake(normalise(title), [normalise("Something else"), normalise(known)]) == normalise(known)


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("Upload with the v2 API", "Upload with the v1 API"),
        ("Worker 1 holds lock 2", "Worker 2 holds lock 1"),
        ("Always retry on a gateway error", "Never retry on a gateway error"),
        ("可以在函数里直接调用子进程接口", "不可以在函数里直接调用子进程接口"),
        ("Store timestamps in UTC", "Store secrets in a vault"),
        ("Plan B for the database", "Plan C for the database"),
    ],
)
def test_number_or_negation_makes_another_lesson(title, known):
    assert namesake(normalise(title), [normalise(known)]) is None


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "password=hunter2!x",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow",
        "https://u:pw1234@host/x",
    ],
)
def test_secret_is_refused_and_not_repeated(secret):
    with pytest.raises(Refused) as refusal:
        refuse_secrets([("text", f"use {secret} here")])
    assert secret not in str(refusal.value)


def test_plain_words_about_tokens_are_no_secret():
    refuse_secrets([("title", "Rotate tokens every week"), ("text", "the password policy is in docs/policy.md")])
