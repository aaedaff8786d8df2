"""Secrets as they stand in the newest words of a transcript: they are in no byte of the state, in whatever place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbd.core.redact import redact, redact_lines
from tests.attack.lab import NOON, TITLE, Lab

A_KEY = "aB3/" * 16
SECRETS = {
    "GitHub": ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"),
    "AWS": ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
    "curl": ("curl -u admin:hunter2pass https://x", "hunter2pass"),
    "mysql": ("mysql -uroot -pS3cretPass db", "S3cretPass"),
    "sshpass": ("sshpass -p S3cretPass ssh x", "S3cretPass"),
    "netrc": ("machine x login bob password hunter2pass", "hunter2pass"),
    "pgpass": ("localhost:5432:db:user:S3cretPass", "S3cretPass"),
    "signed link": ("https://x.blob.core.windows.net/c?sv=2020&sig=abcDEF123%2Bxyz%3D", "abcDEF123"),
    "cookie": ("Cookie: sessionid=abcdef0123456789abcdef; other=1", "abcdef01234"),
    "Docker": ('"auth": "dXNlcjpwYXNzd29yZA=="', "dXNlcjpw"),
    "Kubernetes": ("client-key-data: LS0tLS1CRUdJTiBSU0Eg", "LS0tLS1C"),
    "Azure DevOps": ("AZURE_DEVOPS_EXT_PAT=abcdefghijklmnopqrstuvwxyz", "abcdefghijk"),
    "a hash": ("root:$6$abcdefgh$1234567890123456789012abcdef:19000", "12345678901234"),
    "Terraform": ("abcdefghijklmn.atlasv1.abcdefghijklmnopqrstuvwxyz0123", "klmnopqrst"),
    "Notion": ("secret_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456", "klmnopqrst"),
    "New Relic": ("NRAK-ABCDEFGHIJKLMNOPQRSTUVWXYZ1", "KLMNOP"),
    "Mailgun": ("key-0123456789abcdef0123456789abcdef", "6789abcdef"),
    "a key": (f"-----BEGIN EC PRIVATE KEY-----\n{A_KEY}\ncD4e5f6a==\n-----END EC PRIVATE KEY-----", "cD4e5f6a"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_newest_words_of_a_transcript_leave_no_secret_in_the_state(tmp_path: Path, name: str) -> None:
    lab = Lab(tmp_path)
    lab.note()
    text, secret = SECRETS[name]
    lab.say("s1", f"as in {TITLE} we do\n{text}")
    lab.log(f"2026-06-11 08:00 as in {TITLE} we do\n{text}\n")
    lab.run()
    assert lab.ref() == 2
    lab.say("s1", f"and {TITLE} again\n{text}")
    lab.log(f"and {TITLE} again\n{text}\n")
    lab.run(NOON)
    assert lab.ref() == 2
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert secret.encode() not in kept


@pytest.mark.parametrize("name", SECRETS)
def test_masking_again_changes_nothing(name: str) -> None:
    once = redact_lines(SECRETS[name][0].split("\n"))
    assert redact_lines(once) == once
    assert SECRETS[name][1] not in "".join(once)
    assert redact(redact(SECRETS[name][0])) == redact(SECRETS[name][0])


ORDINARY = """curl -u is no secret alone; run `mysql -p` and it asks. The login form wants a password here
src/app/page.tsx:120:14:error:here; at 10:30:15 host:8080 answered; see https://x/y?code=1&sig=no
cookie: yes please; $1$ is a price; a commit is 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12
kbd/store/ledger/opening.py and tests/attack/test_ledger_faults.py hold it"""


@pytest.mark.parametrize("line", ORDINARY.splitlines())
def test_ordinary_words_stay(line: str) -> None:
    assert redact(line) == line
