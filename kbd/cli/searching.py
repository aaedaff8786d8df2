"""`kbd search`: entries in any state, by the words of their titles, texts and files."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kbd.cli.context import NEVER_RUN
from kbd.cli.known import Known, chosen_bases, known_bases
from kbd.cli.output import Column, emit, emit_json, safe, say, table
from kbd.cli.session import Session
from kbd.config.policies import entry_types
from kbd.core.model import State
from kbd.errors import UsageError
from kbd.service import report
from kbd.service.searching import Hit, search

SHOWN = 20
STATE_COLOURS = (("active", "green"), ("dormant", "yellow"), ("archived", "bright_black"))


@click.command("search")
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@click.option("--type", "type_", help="Only entries of this type.")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only entries in this state.")
@click.option("--base", help="Only this base.")
@click.option("--limit", type=click.IntRange(min=1), default=SHOWN, help=f"At most so many; default {SHOWN}.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def search_entries(
    session: Session,
    query: tuple[str, ...],
    type_: str | None,
    state: str | None,
    base: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Find entries by words of title, text, files they apply to, section, handle or id; dormant and archived ones too.

    Shows those that hold all words; where none does, those that hold most of them.
    """
    found = find(session, " ".join(query), type_, state, base)
    if as_json:
        emit_json({"entries": [as_answer(known, hit) for known, hit in found[:limit]], "found": len(found)})
        return 0
    rows = [[hit.row.handle, hit.row.state.value, str(hit.row.ref), hit.row.type, ", ".join(hit.found_in),
             safe(hit.row.title)] for _, hit in found[:limit]]  # fmt: skip
    columns = (Column("handle"), Column("state", colours=STATE_COLOURS), Column("ref", "right"), Column("type"))
    for line in table([*columns, Column("found in"), Column("title")], rows) if rows else ():
        emit(line)
    if len(found) != len(rows) or not rows:
        say(f"{len(found) - len(rows)} more" if rows else "nothing found")
    return 0


def find(
    session: Session, query: str, type_: str | None, state: str | None, base: str | None
) -> Sequence[tuple[Known, Hit]]:
    """Return the entries found, best first, each with its base; raises UsageError for an unknown type."""
    if type_ is not None and type_.lower() not in entry_types(session.config):
        raise UsageError(f"no type is named {type_!r}", hint=f"known: {', '.join(sorted(entry_types(session.config)))}")
    with session.reading() as ledger:
        if ledger is None:
            say(NEVER_RUN)
            return []
        bases = known_bases(session, ledger, chosen_bases(session.config, base))
    found = []
    for known in bases:
        rows = [
            row
            for row in known.entries
            if type_ is None or type_.lower() == row.type
            if state in (None, row.state.value)
        ]
        found += [(known, hit) for hit in search(rows, known.related.relations or (), query)]
    most = max((hit.words for _, hit in found), default=0)
    best = [one for one in found if one[1].words == most]
    return sorted(best, key=lambda one: (-one[1].score, -one[1].row.ref, one[1].row.handle))


def as_answer(known: Known, hit: Hit) -> dict[str, object]:
    """Return an entry in the shape of `kbd list --json`, with where the words were found."""
    [listed] = report.list_base(known.name, [hit.row], known.forecasts)
    return listed.as_json() | {"found_in": list(hit.found_in), "score": hit.score}
