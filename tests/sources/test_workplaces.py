"""Where a session works, as the place of its transcript tells."""

import hashlib
import json

import pytest

from kbd.sources import aider, gemini_cli
from kbd.sources.contract import PlacedFormat

REGISTRY = json.dumps({"projects": {"/w/app": "app", "/w/old": "old"}}).encode()
HASHED = hashlib.sha256(b"/w/old").hexdigest()


def workplace(relpath: str, files: dict[str, bytes]) -> str | None:
    return gemini_cli.FORMAT.workplace(relpath, f"/home/u/.gemini/{relpath}", files.get)


@pytest.mark.parametrize(
    ("relpath", "expected"),
    [
        ("tmp/app/chats/session-1.jsonl", "/w/app"),
        ("tmp/app/chats/parent/child.jsonl", "/w/app"),
        (f"tmp/{HASHED}/chats/session-1.json", "/w/old"),
        ("tmp/unheard/chats/session-1.jsonl", None),
        ("chats/session-1.jsonl", None),
        ("session-1.jsonl", None),
    ],
)
def test_geminis_registry_names_the_root_of_a_project(relpath: str, expected: str | None) -> None:
    assert workplace(relpath, {"projects.json": REGISTRY}) == expected


def test_the_mark_in_a_projects_folder_is_heard_first() -> None:
    files = {"projects.json": REGISTRY, "tmp/app/.project_root": b"/w/moved\n"}
    assert workplace("tmp/app/chats/session-1.jsonl", files) == "/w/moved"


@pytest.mark.parametrize("registry", [b"", b"[1]", b"{", b'{"projects": 3}', b'{"projects": {"/w/app": ["app"]}}'])
def test_a_registry_that_tells_nothing_leaves_the_place_open(registry: bytes) -> None:
    assert workplace("tmp/app/chats/session-1.jsonl", {"projects.json": registry}) is None


def test_aider_works_in_the_folder_of_its_history() -> None:
    name = ".aider.chat.history.md"
    assert aider.FORMAT.workplace(f"app/{name}", f"/w/app/{name}", lambda _: None) == "/w/app"


def test_only_aiders_histories_lie_among_the_files_of_projects() -> None:
    assert isinstance(aider.FORMAT, PlacedFormat)
    assert (aider.FORMAT.in_projects, gemini_cli.FORMAT.in_projects) == (True, False)
