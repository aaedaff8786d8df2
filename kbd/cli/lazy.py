"""Groups of commands that are imported when they are called: `kbd status` answers in 200 ms."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group that knows its commands by the places where they stand.

    Attributes:
        table: name → `module:attribute`, and what the command does in one line.
        aliases: other names, not listed.
    """

    table: ClassVar[Mapping[str, tuple[str, str]]]
    aliases: ClassVar[Mapping[str, str]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, aliases left out."""
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        known = self.table.get(self.aliases.get(cmd_name, cmd_name))
        if known is None:
            return None
        module, _, name = known[0].partition(":")
        command = getattr(importlib.import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the listing of `--help`; nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.table[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of commands and options that begin so; nothing is imported for it."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = super(click.Group, self).shell_complete(ctx, incomplete)  # without the group's own look at commands
        return [*(CompletionItem(name, help=self.table[name][1]) for name in names), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; of an unknown one say what it may have been meant to be."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415 - for a wrong name only

            close = get_close_matches(name, self.table, 1)
            ctx.fail(f"No such command '{name}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)
