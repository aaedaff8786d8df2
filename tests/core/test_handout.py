"""What an agent is handed: marked, harmless, and never taken for its own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.cite import Known, read_block
from kbd.core.entries import parse
from kbd.core.handles import handle
from kbd.core.handout import Handed, context, entry_text
from kbd.core.match import Matcher, Pattern, PatternKind

MARKER = "⚠️"


def texts(markdown, type_="guideline"):
    data = markdown.encode("utf-8", "surrogateescape")
    found = parse(data).entries
    return [entry_text(data[e.block.start : e.block.end], e, handle(e.norm), type_, MARKER) for e in found]


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        (
            "- [pitfall] **Lock fd leaked** — close it (2026-05-19)\n",
            "[pitfall] **Lock fd leaked** — close it (2026-05-19)",
        ),
        ("* **Lock fd leaked** — close it\n", "[guideline] **Lock fd leaked** — close it"),
        ("- ⚠️ [pitfall] **Lock fd leaked**\n", "[pitfall] **Lock fd leaked**"),
        ("- [pitfall] Lock fd leaked: close it\n", "[pitfall] Lock fd leaked: close it"),
        ("- [KD07] **Lock fd leaked**\n", "[guideline] [KD07] **Lock fd leaked**"),
        ("- [pitfall] **Lock fd leaked** <!-- ref:3 | last:none | decay:active -->\n", "[pitfall] **Lock fd leaked**"),
        (
            "- [pitfall] **Lock fd leaked** — so\n\n  more\n  ```\n  code <!-- /kbd -->\n  ```\n  <!-- ref:1 -->\n",
            "[pitfall] **Lock fd leaked** — so\n  more\n  ```\n  code &lt;!-- /kbd -->\n  ```",
        ),
        ("- [pitfall] **Lock \x1b[31mfd\x07 leaked**\r\n", "[pitfall] **Lock fd leaked**"),
    ],
)
def test_entry_is_handed_out_in_its_own_words_with_its_handle(markdown, shown):
    [text] = texts(markdown)
    assert text == f"- [{handle(parse(markdown.encode()).entries[0].norm)}] {shown}"


def test_nothing_to_hand_out_is_no_text():
    assert context([]) == ""


def test_conflict_is_named():
    told = context([Handed("k-aaaaaa", "- [k-aaaaaa] **A**", (("k-bbbbbb", "B <!-- /kbd -->"),))])
    assert "\n- [k-aaaaaa] **A**\n  conflicts with [k-bbbbbb] B &lt;!-- /kbd -->\n<!-- /kbd -->\n" in told


TITLES = ("Lock fd leaked on exception path", "Store timestamps in UTC", "不要在 async 函数里直接调 subprocess.run")


def named_in(text):
    """Return the titles of which an agent that writes this text is taken to cite one."""
    known = {n: Known(n, 1, "close it in finally") for n in range(len(TITLES))}
    titles = [Pattern(title, PatternKind.TITLE, (n,)) for n, title in enumerate(TITLES)]
    handles = [Pattern(handle(title.lower()), PatternKind.HANDLE, (n,)) for n, title in enumerate(TITLES)]
    reading = read_block(text, Matcher([*titles, *handles]), known)
    return {mention.entry for mention in reading.mentions} if reading else set()


BODY = st.text(alphabet="ab `*_[]()<>!-/k:d\n", max_size=80)


@given(st.lists(BODY, min_size=3, max_size=3))
def test_context_pasted_into_an_answer_cites_nothing(bodies):
    markdown = "".join(
        f"- **{t}** — {b.strip().replace(chr(10), chr(10) + '  ')}\n" for t, b in zip(TITLES, bodies, strict=True)
    )
    handed = [Handed("k-000000", text) for text in texts(markdown)]
    assert named_in("I was told:\n" + context(handed) + "\nSo be it.") == set()


def test_one_line_of_the_context_pasted_alone_cites_nothing():
    for text in texts("".join(f"- **{title}**\n" for title in TITLES)):
        assert named_in(f"first\n{text}\nlast") == set()


def test_a_handle_in_the_agents_own_words_cites():
    assert named_in(f"Closed the descriptor [{handle(TITLES[0].lower())}].") == {0}
