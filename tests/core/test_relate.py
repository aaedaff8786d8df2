"""Names of files, paths in prose, and the life of grown relations."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import Relation
from kbd.core.relate import Change, archivable, expire, is_stale, name_file, paths_in_prose

TODAY = date(2026, 7, 1)


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def applies(file: str, used: date | None, expired: date | None = None, subject: str = "A") -> Relation:
    return Relation(subject, "applies_to", file, used, used, expired)


@pytest.mark.parametrize(
    ("path", "cwd", "git_root", "name"),
    [
        ("/w/app/src/net.py", "/w/app/src", "/w/app", "src/net.py"),
        ("net.py", "/w/app/src", "/w/app", "src/net.py"),
        ("../lib/./io.py", "/w/app/src", "/w/app", "lib/io.py"),
        ("/w/app/src/net.py", "/w/app", None, "src/net.py"),
        ("/w/app2/src/net.py", "/w/app", "/w/app", "net.py"),
        ("/elsewhere/net.py", "/w/app", "/w", "net.py"),
        ("../../../../net.py", "/w/app", "/w/app", "net.py"),
        ("src/net.py", None, None, "src/net.py"),
        ("../net.py", None, None, "net.py"),
        ("/src/net.py", None, None, "net.py"),
        ("~/notes/a.md", "/w/app", "/w/app", "a.md"),
        ("C:\\w\\app\\src\\net.py", "C:\\w\\app", None, "src/net.py"),
        ("src\\net.py", "C:/w/app", "C:/w/app", "src/net.py"),
        ("/w/app/", "/w/app", "/w/app", "app"),
        ("/w/app/src//net.py/", "/w/app/", "/w/app/", "src/net.py"),
        ("/w/x.py", "/w", "/", "x.py"),
        ("", "/w", "/w", "w"),
        ("/", None, None, ""),
        ("..", None, None, ""),
        ("a\nb.py", "/w", None, ""),
        ("a\x1b[31m.py", None, None, ""),
        ("x" * 301, None, None, ""),
    ],
)
def test_file_is_named_from_its_root(path: str, cwd: str | None, git_root: str | None, name: str) -> None:
    assert name_file(path, cwd, git_root) == name


@given(st.text("a./\\~:C", max_size=12), st.one_of(st.none(), st.text("/a.\\", max_size=6)))
def test_name_never_leaves_its_root(path: str, cwd: str | None) -> None:
    name = name_file(path, cwd, None)
    assert not name.startswith("/")
    assert ".." not in name.split("/")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("The fix is in src/net.py, see retry.py:41.", ("src/net.py", "retry.py")),
        ("`src/net.py` (and `./tests/test_net.py:12:5`)", ("src/net.py", "./tests/test_net.py")),
        ("改了src/net.py文件，还有“lib/io.rs”。", ("src/net.py", "lib/io.rs")),
        ("C:\\w\\app\\net.cs and lib\\b.cs", ("C:\\w\\app\\net.cs", "lib\\b.cs")),
        ("edit Makefile, deploy/Dockerfile and .env", ("Makefile", "deploy/Dockerfile", ".env")),
        ("--config=conf/app.toml @src/main.go", ("conf/app.toml", "src/main.go")),
        ("conf/site.custom2 has a rare ending", ("conf/site.custom2",)),
        ("a.py a.py ./a.py", ("a.py", "./a.py")),
        ("a.py b.py c.py d.py e.py f.py", ("a.py", "b.py", "c.py", "d.py", "e.py")),
        ("https://example.com/src/net.py?x=src/other.py www.x.org/a.py", ()),
        ("github.com/owner/repo/net.py", ()),
        ("mail bob@example.py or x@y.md", ()),
        ("version 1.2.3, v2.0.1, 3.5x and 10/12.", ()),
        ("e.g. this, i.e. that, and/or, e.g/i.e, Node.js, read/write.Then", ()),
        ("os.path.join, asyncio.run(x), self.config and event.ts(1)", ()),
        ("It ends here.Next sentence. Well...", ()),
        ("", ()),
    ],
)
def test_prose_names_paths_but_not_everything_with_a_dot(text: str, paths: tuple[str, ...]) -> None:
    assert paths_in_prose(text) == paths


@given(st.text("abpy./\\:@-+~1 \nC(", max_size=80))
def test_paths_stand_in_the_text(text: str) -> None:
    found = paths_in_prose(text)
    assert len(found) <= 5
    assert all(path in text for path in found)


@pytest.mark.parametrize("piece", ["a.", "a/", "-", "a@", "x://", "www.", "C:\\", "a-a."])
def test_hostile_prose_takes_linear_time(piece: str) -> None:
    assert len(paths_in_prose(piece * 100_000)) <= 5


def _applied(existing: list[Relation], changes: tuple[Change, ...]) -> list[Relation]:
    now = list(existing)
    for change in changes:
        if change.before is None:
            now.append(change.after)
        else:
            now[next(i for i, relation in enumerate(now) if relation is change.before)] = change.after
    return now


@pytest.mark.parametrize(("days", "expires"), [(359, False), (360, True), (361, True)])
def test_unused_relation_expires_after_360_days(days: int, expires: bool) -> None:
    old = applies("a.py", ago(days))
    assert expire([old], TODAY) == ((Change(old, replace(old, e=TODAY)),) if expires else ())


def test_only_grown_predicates_expire_and_undated_ones_begin_their_year() -> None:
    spoken = Relation("A", "supersedes", "B", ago(900), ago(900))
    undated = applies("a.py", None)
    changes = expire([spoken, undated, applies("b.py", ago(900), ago(5))], TODAY)
    assert changes == (Change(undated, replace(undated, u=TODAY)),)


def test_relation_counts_as_used_when_it_was_created() -> None:
    assert expire([Relation("A", "applies_to", "f", ago(10), ago(700))], TODAY) == ()


@pytest.mark.parametrize(("days", "moves"), [(359, False), (360, True)])
def test_expired_relation_is_archived_after_another_360_days(days: int, moves: bool) -> None:
    old = applies("a.py", ago(900), ago(days))
    assert archivable([old, applies("b.py", ago(900))], TODAY) == ((old,) if moves else ())


@pytest.mark.parametrize(("used", "stale"), [(ago(179), False), (ago(180), True), (None, True)])
def test_relation_is_stale_after_180_days(used: date | None, stale: bool) -> None:
    assert is_stale(applies("a.py", used), TODAY) is stale
