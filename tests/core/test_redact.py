"""Secrets masked, control characters removed. All secrets here are made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbd.core.redact import MASK, masked_id, printable, redact

A = "Ab3" * 20
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + (A + "\n") * 3 + "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key:\n{KEY} after", A),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "b3Blbn"),
        ("AWS AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI"),
        ("push with ghp_" + A[:36], A[:36]),
        ("github_pat_" + A[:40], A[:40]),
        ("glpat-" + A[:20], A[:20]),
        ("xoxb-123456789012-abcdef", "123456789012"),
        ("https://hooks.slack.com/services/T000/B000/XXXXyyyy", "XXXXyyyy"),
        ("sk-proj-" + A[:40], A[:40]),
        ("sk-ant-api03-" + A[:40], A[:40]),
        ("sk_live_" + A[:24], A[:24]),
        ("AIza" + A[:35], A[:35]),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
        *[(f"use {head}{A[:40]} now", A[:20]) for head in (
            "gsk_", "r8_", "shpat_", "dop_v1_", "dckr_pat_", "whsec_", "glsa_", "ntn_", "xai-", "tskey-", "GOCSPX-",
            "hvs.", "dp.pt.", "ATATT3", "npm_", "hf_", "pypi-", "ya29.")],
        ("dapi" + "0a" * 16, "0a0a"),
        ("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "ZnCjm1"),
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ("-H 'authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("bearer 0123456789abcdef", "0123456789abcdef"),
        ("password=hunter2", "hunter2"),
        ("DB_PASSWORD: 'correct horse'", "correct horse"),
        ('{"client_secret": "s3 cr3t"}', "s3 cr3t"),
        ('"{\\"api_key\\": \\"abcd\\"}"', "abcd"),
        ("Server=db;Uid=sa;Pwd=p@ss!w0rd;Encrypt=yes", "p@ss!w0rd"),
        ("AccountKey=AbCdEf==;EndpointSuffix=x", "AbCdEf=="),
        ("mysql --password hunter2 db", "hunter2"),
        ("login --token=t0k3n", "t0k3n"),
        ("postgres://app:s3cr3t@db.local/x", "s3cr3t"),
        ("redis://:s3cr3t@db", "s3cr3t"),
        ("amqp://u:p@ss@host/v", "p@ss"),
        ("mongodb+srv://u:p/w@host/v", "p/w"),
        ("密码：hunter2", "hunter2"),
        ('password="cut in the mid', "cut in the mid"),
        ("pass\x1b[0mword=hunter2", "hunter2"),
        ("password=" + "x" * 3000, "xxx"),
        ("..." + A + A, A),
    ],
)
def test_secret_is_masked(text: str, secret: str) -> None:
    clean = redact(text)
    assert secret not in clean
    assert MASK in clean


@pytest.mark.parametrize(
    "text",
    [
        "Lock fd leaked on exception path",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b in src/net.py:41",
        "max_tokens=4096, 12000 tokens: fine",
        "http://localhost:4873/@scope/pkg and https://example.com/a?b=c",
        "bearer of bad news, basic understanding",
        "550e8400-e29b-41d4-a716-446655440000",
        "git@github.com:owner/repo.git",
        "the task-skipping rule and risk-assessment-of-the-plan",
        "不要在 async 函数里直接调 subprocess.run",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert redact(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    assert redact("curl -u x postgres://app:s3cr3t@db/x now") == f"curl -u x postgres://app:{MASK}@db/x now"
    assert redact("export TOKEN=abc; run it") == f"export TOKEN={MASK}; run it"
    assert redact("Authorization: Bearer abcdef123 sent") == f"Authorization: Bearer {MASK} sent"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("\x1b\x1b[m[31m", "[31m"),
        ("a\x1b", "a"),
        ("a\x00b\x08c\x7fd\x85e\x9df", "abcd ef"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("a\u200eb\u200fc\u061cd", "abcd"),
        ("a\tb\r\nc\rd\u2028e", "a b c d e"),
        ("\ud800", "\ufffd"),
        ("⚠️ 不要 👩‍💻 é", "⚠️ 不要 👩‍💻 é"),
    ],
)
def test_terminal_gets_no_control_character(text: str, clean: str) -> None:
    assert printable(text) == clean


def test_lines_may_be_kept() -> None:
    assert printable("a\r\nb\x1b[1m\nc\x0b", keep_lines=True) == "a\nb\nc\n"


texts = st.text("pasword=:\"' \x1b[]m\\/@-\n1AB.eyJ\x9b\u202e", max_size=60) | st.text(max_size=60)


@given(texts, st.booleans())
def test_printable_is_idempotent_and_encodable(text: str, keep_lines: bool) -> None:
    clean = printable(text, keep_lines=keep_lines)
    assert printable(clean, keep_lines=keep_lines) == clean
    assert clean.encode().decode() == clean
    assert all(char >= " " or (char == "\n" and keep_lines) for char in clean)


@given(texts)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "piece",
    ["eyJ", "a://b:", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "password=\"", "password='", "password ",
     "authorization: ", "bearer ", "\x1b]", "\x1b[", "A1", "Aa/", "sk-", "ghp_", "SG.", "1", "password", "--token "],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    assert redact(piece * 20_000) is not None


@pytest.mark.parametrize("secret", ["sk-ant-api03-" + A[:40], "ghp_" + A[:36], "AKIAABCDEFGH1JKLMNOP"])
def test_id_that_is_a_token_gets_the_same_other_name_every_time(secret: str) -> None:
    assert masked_id(secret) == masked_id(secret) != masked_id(secret + "x1")
    assert secret[:12] not in masked_id(secret)
    assert masked_id(masked_id(secret)) == masked_id(secret)


@pytest.mark.parametrize("given", ["01985c5e-7d3b-7a10-9c3a-1f2e3d4c5b6a", "msg_01ABC", "gh-thread", "sk-learn", "k"])
def test_other_ids_stay(given: str) -> None:
    assert masked_id(given) == given
