"""What becomes of each shape that knowledge files have in the wild."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pytest

from kbd.core.entries import parse
from kbd.core.model import Entry, State


@dataclass(frozen=True)
class Shape:
    """A document and what is read from it: (title, type, id) of each entry, and the codes of the problems."""

    name: str
    text: str
    entries: tuple[tuple[str, str | None, str | None], ...] = ()
    problems: tuple[str, ...] = ()


LOCK = ("Lock fd leaked", "pitfall", None)
LONG = "x" * 30 + " " + "y" * 200

SHAPES = [
    Shape(
        "canonical",
        "- [pitfall] **Lock fd leaked** — why (2026-05-19, run_x)\n  <!-- ref:3 | last:2026-05-19 | decay:active -->\n",
        (LOCK,),
    ),
    Shape("no type", "- **Lock fd leaked** — why", (("Lock fd leaked", None, None),)),
    Shape("plain note", "- Gate-2 caught it (2026-06-26, run_x, auto-cultivated)"),
    Shape("typed without bold, dash", "- [pitfall] Lock fd leaked — why", (LOCK,)),
    Shape("typed without bold, en dash", "- [pitfall] Lock fd leaked – why", (LOCK,)),
    Shape(
        "typed without bold, two hyphens",
        "- [pitfall] Lock -- fd leaked: why",
        (("Lock -- fd leaked", "pitfall", None),),
    ),
    Shape("typed without bold, colon", "- [pitfall] Lock fd leaked: why", (LOCK,)),
    Shape("typed without bold, sentence", "- [pitfall] Lock fd leaked. Close it", (LOCK,)),
    Shape("typed without bold, nothing more", "- [pitfall] Lock fd leaked (2026-05-19)", (LOCK,)),
    Shape(
        "typed without bold, abbreviation",
        "- [pitfall] Leaks, e.g. Lock fds. Close them",
        (("Leaks, e.g. Lock fds", "pitfall", None),),
    ),
    Shape("typed without bold, long", f"- [pitfall] {LONG}", (("x" * 30, "pitfall", None),)),
    Shape("typed without bold, one long word", f"- [pitfall] {'z' * 300}", (("z" * 120, "pitfall", None),)),
    Shape(
        "tag without bullet",
        "- **Lock fd leaked** a\n[pitfall] text\n",
        (("Lock fd leaked", None, None),),
        ("stray_tag_line",),
    ),
    Shape("tag without bullet and entry", "[Guideline] text\n", (), ("stray_tag_line",)),
    Shape(
        "capital tag",
        "- [Pitfall] **Lock fd leaked**\n- [PITFALL] **Other lock**",
        (LOCK, ("Other lock", "pitfall", None)),
    ),
    Shape(
        "unknown tag in capitals",
        "- [RULED OUT] **Lock fd leaked**",
        (("Lock fd leaked", None, None),),
        ("unknown_type",),
    ),
    Shape("unknown tag", "- [scope] **Lock fd leaked**", (("Lock fd leaked", None, None),), ("unknown_type",)),
    Shape("unknown tag without bold", "- [pitfal] Lock fd leaked: why", (), ("unknown_type",)),
    Shape("id lead", "- [GUI01] **Lock fd leaked**", (("Lock fd leaked", None, "GUI01"),)),
    Shape("id lead and date, no bold", "- [KD01] 2026-06-01 text of it", (("text of it", None, "KD01"),)),
    Shape("id lead, no bold", "- [PRI00] principle text", (("principle text", None, "PRI00"),)),
    Shape("id and type", "- [KD01] [pitfall] **Lock fd leaked**", (("Lock fd leaked", "pitfall", "KD01"),)),
    Shape("type and id", "- [pitfall] [KD01] **Lock fd leaked**", (("Lock fd leaked", "pitfall", "KD01"),)),
    Shape("one digit is no id", "- [COE8] **Lock fd leaked**", (("Lock fd leaked", None, None),), ("unknown_type",)),
    Shape("task box", "- [x] **Done thing**\n- [ ] **Open thing**\n- [X] [pitfall] **More**\n- [-] **Dropped thing**"),
    Shape("date as title", "- **2026-06-25** (session 7cae4a9f): text", (), ("date_title",)),
    Shape("date as title with colon", "- [pitfall] **2026-06-25:** text", (), ("date_title",)),
    Shape(
        "date before the tag", "- 2026-07-19: **DDD paradigm** — [decision] text", (("DDD paradigm", "decision", None),)
    ),
    Shape("date, then tag, then title", "- 2026-07-19 [pitfall] **Lock fd leaked**", (LOCK,)),
    Shape("date and plain text", "- 2026-07-19: something happened"),
    Shape("type in the parentheses", "- **Lock fd leaked** — why (2026-06-25, 7cae4a9f, pitfall)", (LOCK,)),
    Shape(
        "other word in the parentheses",
        "- **Lock fd leaked** — why (2026-06-25, 7cae4a9f, correction)",
        (("Lock fd leaked", None, None),),
    ),
    Shape(
        "heading entry",
        "### 2026-07-18: title (run_x, goal)\n<!-- ref:1 | last:none | decay:active -->\n\ntext\n\n- a\n",
    ),
    Shape(
        "heading entries elsewhere",
        "## 2026-02-12 manual [pitfall]\n\n## [LRN-1] correction\n\n### Title\nSource: x\n",
    ),
    Shape("ACE", "[str-00001] helpful=5 harmful=0 :: text\n- [qa-00001] helpful=0 :: text", (), ("unknown_type",)),
    Shape("basic memory relation", "- relates_to [[Other Note]]\n- [[Other Note]] more"),
    Shape("basic memory observation", "- [decision] text #tag (context)", (("text #tag (context)", "decision", None),)),
    Shape("one file per fact", "---\nname: x\ntype: feedback\n---\n\nThe fact.\n"),
    Shape(
        "second kind of comment",
        "- **Lock fd leaked** a\n  <!-- maturity: seed | used: 3 -->\n",
        (("Lock fd leaked", None, None),),
    ),
    Shape(
        "body after the metadata",
        "- [model] **T of the body** (2026-01-01)\n  <!-- ref:1 | last:none | decay:active -->\n  a\n\n  |b|\n\n  1. c",
        (("T of the body", "model", None),),
    ),
    Shape(
        "unindented body after the metadata",
        "- [model] **T of the body** (2026-01-01)\n  <!-- ref:1 | last:none | decay:active -->\n\nmore\n",
        (("T of the body", "model", None),),
        ("stray_text",),
    ),
    Shape("stars inside the title", "- **Use **kwargs carefully** — why", (("Use **kwargs carefully", None, None),)),
    Shape("power inside the title", "- **Compute 2**10 at once** — why", (("Compute 2**10 at once", None, None),)),
    Shape("bold inside the title", "- **A **bold** word** — why", (("A **bold** word", None, None),)),
    Shape(
        "code inside the title", "- **Use `**kw` and `<!--` well** — why", (("Use `**kw` and `<!--` well", None, None),)
    ),
    Shape("half a sentence as title", "- **layouts (spout** direction, region", (("layouts (spout", None, None),)),
    Shape("title directly before text", "- **不要阻塞循环**因为它会卡死", (("不要阻塞循环", None, None),)),
    Shape(
        "title wrapped over lines",
        "- **Lock fd leaked on\n  exception path** — why",
        (("Lock fd leaked on exception path", None, None),),
    ),
    Shape("title never closed", "- **Lock fd leaked — why\n\n  **not this one**", (), ("unclosed_bold",)),
    Shape(
        "odd characters in the title",
        "- **a --> b ≠ 'c' “d” 不 > (2026-08-10, run_x).** t",
        (("a --> b ≠ 'c' “d” 不 > (2026-08-10, run_x)", None, None),),
    ),
    Shape("long title", f"- **{LONG}** t", ((LONG, None, None),)),
    Shape(
        "two hyphens, colon, nothing after the title",
        "- **Title one** -- t\n- **Title two**: t\n- **Title three:** t\n- **Title four.** t\n- **Title five**",
        tuple((f"Title {name}", None, None) for name in ("one", "two", "three", "four", "five")),
    ),
    Shape(
        "invalid date", "- **Lock fd leaked** — why (2026-02-30)", (("Lock fd leaked", None, None),), ("invalid_date",)
    ),
    Shape(
        "emoji lead", "- 🟡 **Lock fd leaked**\n- ✅ **[CLOSED] x**\n- → **arrow title**\n- ✅ Gate 2 text\n- ▶️ **x**\n"
    ),
    Shape("marker lead", "- ⚠️ [pitfall] **Lock fd leaked**", (LOCK,)),
    Shape("marker without selector", "- ⚠ [pitfall] **Lock fd leaked**", (LOCK,)),
    Shape(
        "wrapped link",
        "- **Lock fd leaked** x\n[see also](url)\n- [see also](url)\n",
        (("Lock fd leaked", None, None),),
    ),
    Shape(
        "other bold lines",
        "> **quoted title**\n| **cell title** |\n@ **at title**\n**bare title**\n~~- **x**~~\n1. **numbered**\n",
    ),
    Shape(
        "index block",
        "<!-- MEMORY_INDEX_START -->\n- [PIT99] **title** x\n<!-- MEMORY_INDEX_END -->\n- [pitfall] **Lock fd leaked**",
        (LOCK,),
    ),
    Shape(
        "orphaned index block",
        "<!-- MEMORY_INDEX_START -->\n- [PIT99] **title** of it\n# H\n- [pitfall] **Lock fd leaked**",
        (LOCK,),
    ),
    Shape(
        "orphaned index lines",
        "- [PIT99] title of it | alias, alias\n<!-- MEMORY_INDEX_END -->\n- [pitfall] **Lock fd leaked**",
        (LOCK,),
    ),
    Shape(
        "fenced example",
        "```\n- [pitfall] **In a fence**\n## x\n```\n~~~~md\n- **too**\n~~~\n~~~~\n- [pitfall] **Lock fd leaked**",
        (LOCK,),
    ),
    Shape(
        "fence in an item",
        "- [pitfall] **Lock fd leaked**\n  ```\n- [pitfall] **After an open fence**\n",
        (LOCK, ("After an open fence", "pitfall", None)),
    ),
    Shape("fence never closed", "- [pitfall] **Lock fd leaked**\n\n```\n- **In it**\n", (LOCK,), ("unclosed_fence",)),
    Shape(
        "multi-line comment", "<!-- RADAR_TODOS [\n- **In a comment**\n] -->\n- [pitfall] **Lock fd leaked**", (LOCK,)
    ),
    Shape(
        "comment never closed", "- [pitfall] **Lock fd leaked**\n\n<!--\n- **In it**\n", (LOCK,), ("unclosed_comment",)
    ),
    Shape(
        "comment sign in the text",
        "- [pitfall] **Lock fd leaked** a <!-- b\n- **Second title** -->\n",
        (LOCK, ("Second title", None, None)),
    ),
    Shape(
        "CRLF", "# A\r\n- [pitfall] **Lock fd leaked** x\r\n  <!-- ref:1 | last:none | decay:active -->\r\n", (LOCK,)
    ),
    Shape("BOM", "\ufeff# A\n- [pitfall] **Lock fd leaked** x\n", (LOCK,)),
    Shape("BOM before an entry", "\ufeff- [pitfall] **Lock fd leaked** x\n", (LOCK,)),
    Shape(
        "odd line separators",
        "- **Lock\u2028fd** leaked\x0c\x85- **not an item**",
        (("Lock fd", None, None),),
        ("unmatchable_title",),
    ),
    Shape("no final newline", "- [pitfall] **Lock fd leaked**", (LOCK,)),
    Shape(
        "same title twice",
        "- [pitfall] **Lock fd leaked** a\n# B\n- [pitfall] **LOCK fd  leaked** b",
        (LOCK, ("LOCK fd leaked", "pitfall", None)),
        ("duplicate_title",),
    ),
    Shape(
        "odd metadata",
        "- [pitfall] **Lock fd leaked**\n  <!-- ref:-1 | last:yesterday | decay:zombie -->\n",
        (LOCK,),
        ("bad_metadata",) * 3,
    ),
    Shape(
        "high count",
        "- [pitfall] **Lock fd leaked**\n  <!-- ref:1010 | last:none | decay:active -->\n",
        (LOCK,),
        ("bad_metadata",),
    ),
    Shape(
        "provenance", "- [pitfall] **Lock fd leaked** — AGENT, 2026-07-03\n  (evidence: path)\n  Source: x\n", (LOCK,)
    ),
    Shape(
        "other vocabularies",
        "- [gotcha] **Lock fd leaked**\n- [PAPER-MCP] **Second title**",
        (("Lock fd leaked", None, None), ("Second title", None, None)),
        ("unknown_type", "unknown_type"),
    ),
    Shape(
        "mixed languages",
        "- [pitfall] **不要在 async 函数里直接调用 subprocess.run** — 会阻塞",
        (("不要在 async 函数里直接调用 subprocess.run", "pitfall", None),),
    ),
    Shape("short title", "- **Build** x", (("Build", None, None),), ("unmatchable_title",)),
    Shape("short title with an id", "- [KD01] **Build** x", (("Build", None, "KD01"),)),
    Shape("tag inside the bold", "- **[pitfall] Lock fd leaked** x", (LOCK,)),
    Shape("no title", "- [pitfall]\n- [pitfall] ** **\n- ****\n", (), ("untitled", "untitled", "unclosed_bold")),
    Shape("ordered item ends an entry", "- [pitfall] **Lock fd leaked**\n1. [x] **no**\n- [ ] box", (LOCK,)),
    Shape("thematic break ends an entry", "- [pitfall] **Lock fd leaked**\n***\n  text\n* * *\n", (LOCK,)),
    Shape(
        "front matter",
        "---\n- **not this**\n---\n- [pitfall] **Lock fd leaked**\n---\n- **Second title**",
        (LOCK, ("Second title", None, None)),
    ),
    Shape("front matter never closed", "---\n- [pitfall] **Lock fd leaked**\n", (LOCK,)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shape_is_read_as(shape: Shape) -> None:
    parsed = parse(shape.text.encode())
    assert tuple((entry.title, entry.type, entry.ident) for entry in parsed.entries) == shape.entries
    assert tuple(problem.code for problem in parsed.problems) == shape.problems


def only(text: str) -> Entry:
    (entry,) = parse(text.encode()).entries
    return entry


def test_absent_type_is_told_from_an_unknown_one() -> None:
    assert (only("- **Some title**").type, only("- **Some title**").tag) == (None, None)
    assert (only("- [scope] **Some title**").type, only("- [scope] **Some title**").tag) == (None, "scope")
    assert only("- [Pitfall] **Some title**").tag == "Pitfall"


def test_unknown_type_names_the_line_the_known_ones_and_the_nearest() -> None:
    (problem,) = parse(b"# A\n\n- [pitfal] **Some title**\n").problems
    assert problem.where == "line 3"
    assert problem.what == "unknown type 'pitfal' (known: decision, guideline, model, pitfall, process)"
    assert problem.hint == "did you mean [pitfall]?"
    (alias,) = parse(b"- [best-practice] **Some title**\n").problems
    assert "guideline" in alias.hint


def test_types_of_the_config_are_known() -> None:
    parsed = parse(b"- [Recipe] **Some title**\n- [pitfall] **Other title**", types=frozenset({"recipe"}))
    assert [entry.type for entry in parsed.entries] == ["recipe", None]


@pytest.mark.parametrize(
    ("text", "created"),
    [
        ("- **Some title** (2026-05-16, run_x)", date(2026, 5, 16)),
        ("- **Some title** (run_x, 2026-06-26)", date(2026, 6, 26)),
        ("- **Some title** 2026-05-02 without", date(2026, 5, 2)),
        ("- **Some title** (2026-07-22; SwarmWS UNBOUND 2026-08-19)", date(2026, 8, 19)),
        ("- **Some title** (2026-07-22) x\n  and (2026-01-01) y", date(2026, 1, 1)),
        ("- **Some title** (2026-07-22) x 2026-08-01", date(2026, 7, 22)),
        ("- **Some title (2026-08-10, run_x).** t", date(2026, 8, 10)),
        ("- 2026-07-19: **Some title** — [decision] text", date(2026, 7, 19)),
        ("- **Some title** x\n  2026-05-02 on the second line", None),
        ("- **Some title** (2026-02-30)", None),
        ("- **Some title** (2026-01-05) (2026-02-30)", date(2026, 1, 5)),
        ("- **Some title** x\n  <!-- ref:1 | last:2026-05-05 | decay:active -->", None),
        ("- **Some title** (a (2026-01-01) b 2026-02-02)", date(2026, 2, 2)),
        ("- **Some title** :( sad 2026-03-03\n\n  (x)", date(2026, 3, 3)),
        ("- **Some title** （2026-03-04）", date(2026, 3, 4)),
        ("- **Some title** no date", None),
        ("- **Some title** (2026-03-04)\n  ```\n  (2025-01-01)\n  ```", date(2026, 3, 4)),
    ],
)
def test_creation_day_is_the_last_date_in_parentheses_else_the_last_of_the_first_line(text: str, created: date) -> None:
    assert only(text).created == created


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("- **Some title** — why it matters (2026-05-19)", "why it matters"),
        ("- **Some title:** Why", "why"),
        ("- **Some title**: `Why` **so**", "why so"),
        ("- **Some title**", ""),
        ("- **Some title** (2026-05-19, run_x).", ""),
        ("- **Some title** -- why\n  more\n  <!-- ref:1 | last:none | decay:active -->\n", "why more"),
        ("- **Some title** why <!-- maturity: x --> so\n  <!-- a\n  b -->\n  end", "why so end"),
        ("- [pitfall] Some title: why — so", "why - so"),
        ("- **Some title** (2026-05-19) then more", "then more"),
    ],
)
def test_body_is_the_text_after_the_title(text: str, body: str) -> None:
    assert only(text).body == body


def test_stacked_metadata_is_read_as_one() -> None:
    entry = only(
        "- **Some title** x\n  <!-- ref:2 | last:none | decay:active | a:1 -->\n\n"
        "<!-- ref:1 | last:2026-05-05 | decay:dormant | b:2 -->\n\ntext"
    )
    assert entry.meta
    assert (entry.meta.ref, entry.meta.last, entry.meta.state) == (1, date(2026, 5, 5), State.DORMANT)
    assert entry.meta.extra == (("a", "1"), ("b", "2"))
    assert len(entry.comments) == 2


@pytest.mark.parametrize(
    "text",
    [
        "- **Some title** say `<!-- ref:1 | last:none | decay:active -->` here",
        "- **Some title**\n  ```\n  <!-- ref:1 | last:none | decay:active -->\n  ```",
        "- **Some title**\n  <!-- a\n  <!-- ref:1 | last:none | decay:active -->",
        "- **Some title**\n  - [pitfall] **Nested title**\n    <!-- ref:1 | last:none | decay:active -->",
        "- **Some title**\n\t- [pitfall] **Nested title** <!-- ref:1 | last:none | decay:active -->",
        "- **Some title**\n\n# H\n<!-- ref:1 | last:none | decay:active -->",
        "- **Some title**\n\ntext\n<!-- ref:1 | last:none | decay:active -->",
    ],
)
def test_comment_of_something_else_is_not_the_entrys_metadata(text: str) -> None:
    assert only(text).meta is None
