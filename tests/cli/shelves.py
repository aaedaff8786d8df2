"""A world whose knowledge was read by a real pass."""

from __future__ import annotations

from tests.cli.world import World

LESSONS = """\
# Lessons

## Debugging

- [pitfall] **Lock fd leaked on exception path** — close it in finally (2026-05-19)
- [guideline] **Store timestamps in UTC** — convert where a person reads it (2026-05-02)
  a second line
- [decision] **Chose SQLite over a server** — one process writes (2026-04-11)
- [process] **Release: build, verify, tag, publish** — in this order (2026-06-01)
- ⚠️ [pitfall] **Retry storm after an outage** — jitter was missing (2026-01-01)
  <!-- ref:0 | last:none | decay:dormant -->
"""


def read(world: World, text: str = LESSONS, log: str = "") -> World:
    """Write the lessons and what an agent wrote, and let one pass read both."""
    world.note("lessons.md", text)
    if log:
        (world.root / "logs" / "agent.log").write_text(log)
    passed = world.run("run", "--once")
    assert passed.exit_code == 0, passed.output
    return world
