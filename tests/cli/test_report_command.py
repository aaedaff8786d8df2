"""`kbd report`: what became of the lessons over some days, in the numbers of the other commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.service.life import Life, entry

DAY = timedelta(days=1)
START = date(2026, 3, 1)
END = START + 9 * DAY
OFTEN = "Lock fd leaked on exception path"
ONCE = "Build cache must be warm"
FADES = "Measure before you optimise it"
RETURNS = "Sockets are closed by the pool"
LATE = "Store timestamps in UTC always"
TEXT = (
    "# Lessons\n\n" + entry(OFTEN, "2026-02-20") + entry(ONCE, "2026-02-20") + entry(FADES, "2025-01-01")
    + entry(RETURNS, "2025-01-01", comment="ref:4 | last:2025-10-01 | decay:dormant")
)  # fmt: skip


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path)
    life.live.write_text(TEXT)
    life.says(START, f"by {OFTEN}")
    life.lived(START)
    life.says(START + 4 * DAY, f"by {OFTEN}")
    life.says(START + 5 * DAY, f"by {OFTEN}, {ONCE} and {RETURNS}")
    life.lived(START + 5 * DAY)
    life.live.write_text(life.live.read_text() + entry(LATE, "2026-03-06"))
    life.lived(START + 6 * DAY)
    life.says(END, f"by {OFTEN}")
    life.lived(END)
    life.close()
    yield life
    life.close()


def base_of(life: Life, *args: str) -> dict[str, Any]:
    result = life.kbd("report", "--json", *args, now=END)
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["version"], answer["until"]) == (1, END.isoformat())
    base: dict[str, Any] = answer["bases"][0]
    return base | {"since": answer["since"]}


def test_report_counts_the_references_of_the_last_seven_days_as_status_does(life: Life) -> None:
    base = base_of(life)
    assert base["since"] == (END - 6 * DAY).isoformat()
    cited = [(c["title"], c["references"], c["ref"]) for c in base["cited"]]
    assert cited == [(OFTEN, 3, 4), (ONCE, 1, 1), (RETURNS, 1, 5)]
    status = json.loads(life.kbd("status", "--json", now=END).stdout)["bases"][0]
    assert (base["references"], base["sessions"]) == (5, 1)
    assert base["references"] == status["refs_7d"]


def test_report_tells_what_is_new_revived_and_faded_and_what_nobody_ever_cited(life: Life) -> None:
    base = base_of(life)
    told = {name: [change["title"] for change in base[name]] for name in ("new", "revived", "faded", "archived")}
    assert told == {"new": [LATE], "revived": [RETURNS], "faded": [FADES], "archived": []}
    assert [(e["title"], e["state"]) for e in base["never_cited"]] == [(FADES, "dormant"), (LATE, "active")]


def test_report_since_a_day_leaves_out_what_was_before(life: Life) -> None:
    base = base_of(life, "--since", END.isoformat())
    assert [(c["title"], c["references"]) for c in base["cited"]] == [(OFTEN, 1)]
    assert (base["new"], base["revived"], base["faded"]) == ([], [], [])
    assert base_of(life, "--since", "1d") == base


def test_report_for_people_names_each_change_under_its_heading(life: Life) -> None:
    lines = life.kbd("report", now=END).stdout.splitlines()
    assert lines[0] == "2026-03-04 to 2026-03-10"
    assert lines[2] == "lessons  5 references in 1 session, 3 entries cited"
    assert lines[lines.index("revived  (1)") + 1].endswith(RETURNS)
    assert "never cited  (2 of 5)" in lines


def test_report_of_a_span_that_is_no_day_is_a_usage_error(life: Life) -> None:
    assert life.kbd("report", "--since", "lately", now=END).exit_code == 2
