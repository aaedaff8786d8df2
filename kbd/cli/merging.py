"""`kbd merge-driver`: git calls it to merge two versions of a knowledge file."""

from __future__ import annotations

import click

from kbd.cli.output import say
from kbd.cli.session import Session
from kbd.config.policies import entry_types
from kbd.core import entries as markdown
from kbd.core.countermerge import Versions, aligned
from kbd.core.entries import Parsed
from kbd.core.headline import DEFAULT_MARKER, DEFAULT_TYPES
from kbd.core.undoing import Parse
from kbd.errors import FileUnreadable, UsageError
from kbd.store.base_files import MAX_BYTES
from kbd.store.files import read_regular
from kbd.store.gitmerge import merge_texts

PATH = click.Path(exists=True, dir_okay=False)


@click.command("merge-driver")
@click.argument("common", metavar="%O", type=PATH)
@click.argument("ours", metavar="%A", type=PATH)
@click.argument("theirs", metavar="%B", type=PATH)
@click.option("--marker-size", metavar="%L", type=click.IntRange(1, 99), default=7, help="Length of conflict markers.")
@click.pass_obj
def merge_driver(session: Session, common: str, ours: str, theirs: str, marker_size: int) -> int:
    """Merge %B into %A as git asks for: counters add up (A + B - O, the newer `last`), words by git's own merge.

    Exit 1: conflict markers stand in the result. In `.gitattributes`: `knowledge/*.md merge=kbd`; in the repository:
    `git config merge.kbd.driver "kbd merge-driver %O %A %B"`.
    """
    versions = Versions(*(read_regular(path, MAX_BYTES) for path in (common, ours, theirs)))
    even = aligned(versions, _parse(session))
    merge = merge_texts(even.ours, even.common, even.theirs, marker_size)
    try:
        with open(ours, "wb") as file:
            file.write(merge.data)
    except OSError as error:
        raise FileUnreadable(str(error), where=ours, hint="git keeps both versions; merge by hand") from error
    return 1 if merge.conflicts else 0


def _parse(session: Session) -> Parse:
    """Return the reader of knowledge files; a configuration that cannot be read does not stop a merge."""
    types, marker = DEFAULT_TYPES, DEFAULT_MARKER
    try:
        types, marker = entry_types(session.config), session.config.decay.marker
    except UsageError as error:
        say(f"kbd merge-driver: the configuration is not used: {error.what}")

    def parse(data: bytes) -> Parsed:
        return markdown.parse(data, types, marker)

    return parse
