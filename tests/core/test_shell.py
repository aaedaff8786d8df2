"""What an agent wrote in a command, what it looked up, and which files it named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.model import TouchMode
from kbd.core.shell import ShellCommand, analyse, is_path, join_path, paths_in_code

T = "Backoff must be capped"

RETRIEVALS = [
    f"rg -n '{T}' docs/",
    f'grep -rn "{T}" . 2>/dev/null | head -20',
    f"/usr/bin/rg '{T}'",
    f"\\grep '{T}' x",
    f"cat x.md | grep '{T}'",
    f"sed -n '/{T}/p' x.md",
    f"awk '/{T}/' x.md",
    f"git log --grep '{T}'",
    f"git -C /r --no-pager grep '{T}'",
    f"git show HEAD:x | rg '{T}'",
    f"sudo -u me timeout 5 grep '{T}' x.py",
    f"LC_ALL=C env -u X rg '{T}'",
    f"find . -name '*.md' | xargs -n 1 grep -l '{T}'",
    f"find . -exec grep '{T}' {{}} +",
    f"bash -lc \"rg '{T}' .\"",
    f"docker exec c bash -c 'grep \"{T}\" f'",
    f"docker exec -it -u me c grep '{T}' f",
    f"docker compose exec web rg '{T}'",
    f"kubectl -n x exec pod/a -- grep '{T}' f",
    f"bash <<'E'\nrg '{T}'\nE",
    f"eval \"rg '{T}'\"",
    f"Q='{T}'; rg \"$Q\" .",
    f"for t in '{T}'; do grep \"$t\" x; done",
    f"if grep -q '{T}' x; then ls; fi",
    f"while ! grep '{T}' x; do sleep 1; done",
    f"(cd a && rg '{T}')",
    f"echo $(rg '{T}')",
    f"echo `rg '{T}'`",
    f"diff <(rg '{T}' a) <(rg '{T}' b)",
    f"grep -f - x <<'E'\n{T}\nE",
    f"grep '{T}' x > out.txt",
    f"gh pr list --search '{T}'",
    f"perl -ne 'print if /{T}/' x",
    f"time rg '{T}'",
    f"kbd search '{T}'",
    f"uv run kbd list '{T}'",
    f"python3 -m kbd add '{T}'",
]

WRITINGS = [
    f"git commit -am 'cap it ({T})'",
    f"git commit -m \"$(cat <<'EOF'\nfix: don't wait ({T})\n\nIt's done.\nEOF\n)\" && git push",
    f"git commit -F - <<E\n{T}\nE",
    f"cat <<'E' | git commit -F -\n{T}\nE",
    f"cat > a.py <<'E'\n# {T}\nE",
    f"cat >a.py <<-E\n\t# {T}\n\tE\nls",
    f"echo '{T}' >> notes.txt",
    f"echo '{T}' | tee -a notes.txt",
    f"tee x <<< '{T}'",
    f"# {T}\nls",
    f"ls # {T}",
    f"rg x; echo {T}",
    f"rg x && git commit -m '{T}'",
    f"rg x | while read l; do echo '{T}'; done",
    f"rg x\ngit commit -m '{T}'",
    f"M='{T}'; git commit -m \"$M\"",
    f"export M='{T}' && gh pr create --body \"${{M}}\"",
    f"python3 -c 'print(\"{T}\")'",
    f"python3 - <<'E'\nprint('{T}')\nE",
    f"bash -lc \"echo '{T}'\"",
    f"ssh host 'echo \"{T}\"'",
    f"docker exec c git commit -m '{T}'",
    f"sed -i 's/x/{T}/' a.py",
    f"sed 's/x/{T}/' a.py > b.py",
    f"awk 'BEGIN {{print \"{T}\"}}' > out",
    f"echo $'{T}\\n'",
    f"echo \"a $(echo '{T}')\"",
    f"(cd x; echo '{T}')",
    f"echo '{T}",
    f"cat > x <<'E'\n{T}",
    f"((i = 1 << 2)); echo '{T}'",
    f"if true; then git commit -m '{T}'; fi",
    f"echo a; kbd list; echo '{T}'",
    f"curl -d '{T}' https://x",
]


@pytest.mark.parametrize("command", RETRIEVALS)
def test_retrieval_writes_nothing(command: str) -> None:
    assert T not in analyse(command).written


@pytest.mark.parametrize("command", WRITINGS)
def test_what_the_agent_wrote_counts(command: str) -> None:
    assert T in " ".join(analyse(command).written.split())


@pytest.mark.parametrize(
    ("command", "touched"),
    [
        ("cat >> /r/kb/lessons.md <<'E'\nx\nE", {"/r/kb/lessons.md": TouchMode.WRITE}),
        ("cd kb && echo x >> lessons.md", {"kb/lessons.md": TouchMode.WRITE}),
        ("(cd kb; cat a.md); cat b.md", {"kb/a.md": TouchMode.READ, "b.md": TouchMode.READ}),
        ("cd a; cd ../b; echo > c.md", {"a/../b/c.md": TouchMode.WRITE}),
        ("F=kb/l.md; echo x > $F", {"kb/l.md": TouchMode.WRITE}),
        ("cat a.md > /dev/null 2>&1", {"a.md": TouchMode.READ}),
        ("cp a.md kb/b.md", {"a.md": TouchMode.READ, "kb/b.md": TouchMode.WRITE}),
        ("sed -i 's/a/b/' src/x.py", {"src/x.py": TouchMode.WRITE}),
        ("grep -n foo src/net.py", {"src/net.py": TouchMode.READ}),
        ("cat x.py; echo a > x.py", {"x.py": TouchMode.WRITE}),
        ("foo &> all.log", {"all.log": TouchMode.WRITE}),
        ("wc -l < in.txt", {"in.txt": TouchMode.READ}),
        ("apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\nE",
         {"a.py": TouchMode.WRITE}),
    ],
)  # fmt: skip
def test_files_are_touched_where_a_cd_put_them(command: str, touched: dict[str, TouchMode]) -> None:
    assert {touch.path: touch.mode for touch in analyse(command).touched} == touched


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 fix.py --base=kb/lessons.md", "kb/lessons.md"),
        ("python3 - <<'E'\nopen('kb/lessons.md', 'a').write('x')\nE", "kb/lessons.md"),
        ("git show HEAD:kb/lessons.md", "kb/lessons.md"),
        ("sed -i 's/a/b/' kb/*.md", "kb/*.md"),
        ("cd kb && vim lessons.md", "kb/lessons.md"),
        ("git add 知识/经验.md", "知识/经验.md"),
    ],
)
def test_other_tokens_that_could_be_paths_are_named(command: str, path: str) -> None:
    assert path in analyse(command).named


def test_prose_names_no_file() -> None:
    assert analyse("git commit -m 'mend kb/lessons.md at last'").named == ()


def test_old_halves_are_copied() -> None:
    patch = "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a\n@@\n c\n-o\n+n\n*** End Patch\nE"
    assert analyse("sed -i 's/Old title/New/g' a.py").copied == "Old title"
    assert "n" in analyse(patch).written.split("\n")
    assert {"c", "o"} <= set(analyse(patch).copied.split("\n"))


def test_own_commands_are_marked_and_what_they_said_is_kept_apart() -> None:
    found = analyse("kbd add 'A lesson' && echo hi")
    assert found.own
    assert found.written == "echo hi"
    assert "A lesson" in found.copied


@pytest.mark.parametrize(
    ("command", "titles"),
    [
        ("kbd add 'A lesson' 'as Another lesson'", ("A lesson",)),
        ("kbd add --type pitfall --text='as Another lesson' 'A lesson'", ("A lesson",)),
        ("kbd add 'its words' --title 'A lesson'", ("A lesson",)),
        ("python3 -m kbd --state-dir s --now=2026-06-11 add --distinct -- 'A lesson'", ("A lesson",)),
        ("kbd add 'A lesson' && kbd add 'Another lesson'", ("A lesson", "Another lesson")),
        ("kbd add 'A lesson' --dry-run", ()),
        ("kbd search add 'A lesson'", ()),
        ("kbd add --text", ()),
        ("kbd --config", ()),
    ],
)
def test_title_that_is_added_is_told_from_what_else_is_said(command: str, titles: tuple[str, ...]) -> None:
    assert analyse(command).added == titles


def test_the_directory_given_is_where_paths_begin() -> None:
    assert analyse("cat a.md", "/w").touched[0].path == "/w/a.md"


def test_doubling_variables_stay_small() -> None:
    assert len(analyse("A=xxxxxxxx;" + "A=$A$A;" * 60 + "echo $A").written) < 100_000


@pytest.mark.parametrize("piece", ["$(", "`", "((", '"$(', "<<A;", "\\", "<", "x;", "(x)", "'", "${", "bash -c '"])
def test_hostile_repetition_is_read_in_linear_time(piece: str) -> None:
    found = analyse(piece * (1_000_000 // len(piece)))
    assert isinstance(found, ShellCommand)


@given(st.lists(st.sampled_from([*"abc \n\t'\"`\\$(){}<>;&|#=-/.", "<<E\n", "\nE\n", "$(", "&>", ">&2", "cd ", "rg "])))
def test_any_text_has_a_reading(pieces: list[str]) -> None:
    assert analyse("".join(pieces)) == analyse("".join(pieces))


@given(st.text())
def test_plain_words_of_a_written_command_survive(text: str) -> None:
    assert "echo marker" in analyse(f"echo marker\n{text}").written.split("\n")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("a/b", True), ("a.md", True), (".env", True), ("1.2.3", False), ("-x.md", False), ("https://a/b", False),
     ("a b.md", False), ("word", False), ("", False), ("C:\\x", True)],
)  # fmt: skip
def test_paths_are_told_from_words(word: str, expected: bool) -> None:
    assert is_path(word) is expected


def test_absolute_paths_and_homes_stay() -> None:
    assert [join_path("/w", path) for path in ("/a", "~/a", "./a", "a", "C:\\a")] == [
        "/a", "~/a", "/w/a", "/w/a", "C:\\a"
    ]  # fmt: skip


def test_paths_in_code_are_found_in_order() -> None:
    assert paths_in_code("f('b.md'); g(\"a/c\")") == ["b.md", "a/c"]
