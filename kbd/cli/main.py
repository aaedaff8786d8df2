"""The command line: global options, the commands by name, and errors as exit codes."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from kbd import __version__
from kbd.cli.lazy import LazyGroup
from kbd.errors import KbdError
from kbd.streams import fill_closed_streams, let_go, settle

COMMANDS = {
    "add": ("kbd.cli.adding:add_entry", "Add an entry, dated today, and print its handle."),
    "adopt": ("kbd.cli.adopting:adopt_file", "Make entries of plain bullets or another tool's notes."),
    "classify": ("kbd.cli.classifying:classify", "Give entries without a tag the type that their words show."),
    "context": ("kbd.cli.context:context", "Print what the next session should know."),
    "decay": ("kbd.cli.foretelling:decay", "Run the daily pass now, instead of at its hour."),
    "detach": ("kbd.cli.leaving:detach", "Take kbd's comments, markers and hooks out again."),
    "doctor": ("kbd.cli.doctor:doctor", "Check the installation; exit 1 with findings."),
    "export": ("kbd.cli.graph.exporting:export", "Print the graph and the lessons for another tool."),
    "forecast": ("kbd.cli.foretelling:forecast", "Show what fades when, if nobody cites it."),
    "forget": ("kbd.cli.changing:forget", "Delete an entry from its file."),
    "hook": ("kbd.cli.hooking:hook", "Answer an agent's hook with what it should know."),
    "graph": ("kbd.cli.graph:graph", "Keep a typed graph of entities and relations."),
    "init": ("kbd.cli.init:init", "Find agents and knowledge, then write a configuration."),
    "lint": ("kbd.cli.linting:lint", "Find what is wrong in knowledge and relations files."),
    "list": ("kbd.cli.seeing:list_entries", "List the entries: references, last citation, days left."),
    "log": ("kbd.cli.history:log", "Show what happened to entries and files, oldest first."),
    "mcp": ("kbd.mcp:mcp", "Serve agents as an MCP server on stdio, until stdin closes."),
    "merge-driver": ("kbd.cli.merging:merge_driver", "Merge counters in git."),
    "pause": ("kbd.cli.pausing:pause", "Let kbd rest: nothing is read, written or faded."),
    "pin": ("kbd.cli.changing:pin", "Exempt an entry from fading."),
    "relate": ("kbd.cli.linking:relate", "Add a relation, or note that it is used today."),
    "purge": ("kbd.cli.leaving:purge", "Remove a session, project or entry from the ledger for good."),
    "report": ("kbd.cli.retrospect:report", "Look back: cited most, new, revived, faded, never cited."),
    "rescan": ("kbd.cli.running:rescan", "Read everything again from the beginning; no number changes."),
    "restore": ("kbd.cli.changing:restore", "Bring an archived entry back to its file, active from today."),
    "resume": ("kbd.cli.pausing:resume", "End a pause."),
    "run": ("kbd.cli.running:run", "Run the daemon in the foreground."),
    "search": ("kbd.cli.searching:search_entries", "Find entries by their words, dormant and archived ones too."),
    "service": ("kbd.cli.service:service", "Let systemd or launchd keep kbd running."),
    "set": ("kbd.cli.changing:set_values", "Correct the number, the day or the state of an entry."),
    "show": ("kbd.cli.seeing:show", "Show an entry with its evidence, relations and history."),
    "sources": ("kbd.cli.sources:sources", "List the sources, and the agents found that no source reads."),
    "status": ("kbd.cli.health:status", "Say how kbd fares."),
    "suppressed": ("kbd.cli.context:suppressed", "List the entries that are not handed out, and why."),
    "undo": ("kbd.cli.undoing:undo_write", "Take back the newest write of kbd."),
    "unrelate": ("kbd.cli.linking:unrelate", "End a relation."),
}
ALIASES = {"explain": "show"}
INTERRUPTED = 130
OUT_OF_REACH = frozenset({errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
GARBAGE_OBJECTS = 100_000
"""So many more objects are looked through for cycles: looking after every 700, as is usual, costs a tenth of a run."""


class Commands(LazyGroup):
    """The commands of kbd. What a command returns is the exit code; a KbdError brings its own."""

    table = COMMANDS
    aliases = ALIASES

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; what `--help` and `--version` meet while they are written (`> /dev/full`) is told."""
        fill_closed_streams()
        try:
            return super().main(*args, **extra)
        except OSError as error:
            sys.exit(_failed(error))
        finally:
            settle(sys.stderr)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and leave with its exit code."""
        gc.set_threshold(GARBAGE_OBJECTS)
        try:
            code = _exit_code(lambda: super(Commands, self).invoke(ctx), lambda: ctx.obj.damage() if ctx.obj else None)
        finally:
            _wait_for_editors()
        ctx.exit(code)


def _exit_code(call: Callable[[], Any], damage: Callable[[], KbdError | None] = lambda: None) -> int:
    """Return what the call returns as an exit code; what it raises becomes a message on stderr and a code.

    `damage` looks into the ledger, which may be to blame for what nobody foresaw.
    """
    try:
        code = call()
        sys.stdout.flush()
    except BrokenPipeError:
        let_go(sys.stdout)
        return 0  # whoever read the answer has enough of it (`kbd list | head`)
    except KbdError as error:
        _complain(error.message())
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (click.ClickException, click.exceptions.Exit):
        raise
    except Exception as error:  # noqa: BLE001 - the command line's boundary: a fault of kbd is one line, not a traceback
        if not isinstance(error, OSError) and (damaged := damage()):
            _complain(damaged.message())
            return damaged.exit_code
        return _failed(error)
    return code if isinstance(code, int) else 0


def _wait_for_editors() -> None:
    """Save what editors write late into files that the command replaced, and say so."""
    # Where nothing was replaced, the module was not needed, and is not loaded for this.
    if "kbd.store.displaced" not in sys.modules:
        return
    from kbd.cli.editors import wait_for_editors  # noqa: PLC0415 - see above

    with suppress(KeyboardInterrupt):  # whoever asks for it need not wait
        wait_for_editors()


def _failed(error: Exception) -> int:
    """Tell what went wrong; return the exit code."""
    _complain(_said_of(error))
    if isinstance(error, OSError) and _is_of_output(error):
        let_go(sys.stdout)
    return 1


def _said_of(error: Exception) -> str:
    """Return what is wrong, and in which part of the world; of what the world is not to blame for: a fault of kbd."""
    if os.environ.get("KBD_DEBUG"):
        import traceback  # noqa: PLC0415 - as `_complain`

        traceback.print_exc()
    if isinstance(error, OSError) and error.errno in OUT_OF_REACH:
        where = error.filename or ("output" if _is_of_output(error) else "")
        if where:
            return f"{where}: {error.strerror}; mend its permissions, or free the disk"
    return f"{type(error).__name__}: {error}; this is a fault of kbd, KBD_DEBUG=1 shows where"


def _is_of_output(error: OSError) -> bool:
    """Tell whether it was raised where the answer is written (`kbd list > /dev/full`): such an error names no file."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost is not None and innermost.tb_frame.f_globals.get("__name__") in ("click.utils", __name__)


def _complain(message: str) -> None:
    # Imported here for the start-up time of commands that go well.
    from kbd.cli.output import say  # noqa: PLC0415 - see above

    say(f"kbd: {message}")


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="FILE", help="Configuration; default $KBD_CONFIG, then the user's.")
@click.option("--state-dir", metavar="DIR", help="State directory; default $KBD_STATE_DIR, then the user's.")
@click.option("--now", metavar="DATE", help="Take this date (its noon) or ISO time as the present, in UTC.")
@click.version_option(__version__, "--version", prog_name="kbd")
@click.pass_context
def main(ctx: click.Context, config: str | None, state_dir: str | None, now: str | None) -> None:
    """Give each lesson of an AI agent a life: counted when cited, faded when not."""
    from kbd.cli.session import Session, parse_now  # noqa: PLC0415 - no need of it for --version and completion

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title that the locale cannot write is no failure
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    ctx.obj = Session(config, state_dir, parse_now(now) if now else None, os.environ)
