"""Groups of commands that are imported when they are called: `kbd status` answers in 200 ms."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """A group that knows its commands by the places where they stand.

    Attributes:
        places: name → `module:attribute`.
        aliases: other names, not listed.
    """

    places: ClassVar[Mapping[str, str]]
    aliases: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, aliases left out."""
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        place = self.places.get(self.aliases.get(cmd_name, cmd_name))
        if place is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(importlib.import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; of an unknown one say what it may have been meant to be."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415 - for a wrong name only

            close = get_close_matches(name, self.places, 1)
            ctx.fail(f"No such command '{name}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)
