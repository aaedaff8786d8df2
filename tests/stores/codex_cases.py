"""The cases of rollouts that Codex packs."""

import json
from collections.abc import Callable

import zstandard
from case_laying import CAP, ROOTS, SHIP, UTC, Case


def lay() -> None:
    thread = "01900000-0000-7000-8000-000000000001"
    name = f"rollout-2026-06-10T09-00-00-{thread}.jsonl"

    def rollout(*extra: str) -> bytes:
        meta = {"id": thread, "timestamp": "2026-06-10T09:00:00.000Z", "cwd": "/w/app"}
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CAP}]}
        lines = [
            ("session_meta", meta),
            ("response_item", item),
            (
                "response_item",
                item | {"id": "msg_00000000000000000001", "content": [{"type": "output_text", "text": SHIP}]},
            ),
        ]
        lines += [("response_item", item | {"content": [{"type": "output_text", "text": words}]}) for words in extra]
        return b"".join(
            json.dumps({"timestamp": f"2026-06-10T09:00:0{index}.000Z", "type": kind, "payload": payload}).encode()
            + b"\n"
            for index, (kind, payload) in enumerate(lines)
        )

    def laid(case: Case, folder: str, data: bytes, *, packed: bool) -> Callable[[], None]:
        def write() -> None:
            path = case.root / folder / (name + (".zst" if packed else ""))
            path.parent.mkdir(parents=True)
            path.write_bytes(zstandard.ZstdCompressor(level=3).compress(data) if packed else data)

        return write

    case = Case(
        "codex",
        "archived-packed-and-back",
        "one rollout under three names: sessions, archive, packed, and unpacked again",
    )
    live, stored = f"{ROOTS['codex']}/sessions/2026/06/10/{name}", f"{ROOTS['codex']}/archived_sessions/{name}"
    once = {"ref": 1, "citations": 1, "sessions": 1}
    case.step(laid(case, "sessions/2026/06/10", rollout(), packed=False), cap=once, ship=once)
    case.step(ops=[["rename", live, stored]], cap=once, ship=once)
    case.step(laid(case, "archived_sessions", rollout(), packed=True), ops=[["delete", stored]], cap=once, ship=once)
    longer = rollout(f"{UTC}, then.")
    case.step(
        laid(case, "archived_sessions", longer, packed=False),
        ops=[["delete", stored + ".zst"]],
        cap=once,
        ship=once,
        utc=1,
    )

    case = Case(
        "codex",
        "packed-beside-its-plain-file",
        "a packed rollout is read first, the plain one that hides it holds more",
    )
    case.step(laid(case, "archived_sessions", rollout(), packed=True), cap=once, ship=once)
    case.step(laid(case, "archived_sessions", longer, packed=False), cap=once, ship=once, utc=1)
