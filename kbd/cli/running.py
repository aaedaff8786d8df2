"""`kbd run` and `kbd rescan`."""

from __future__ import annotations

import click

from kbd.cli.output import say
from kbd.cli.session import Session
from kbd.config import data_dir, write_templates
from kbd.errors import UsageError


@click.command("run")
@click.option("--once", is_flag=True, help="One full pass: read everything, decay if due, write, exit.")
@click.pass_obj
def run(session: Session, once: bool) -> int:
    """Run the daemon in the foreground."""
    from kbd import daemon  # noqa: PLC0415 - brings watchdog and the matcher, which no other command needs

    if session.config_path is None:
        for path in write_templates(data_dir(), session.now().date()):
            say(f"made {path}")
    setting = daemon.Setting(session.load, session.state_dir, session.env, session.home, session.now)
    return daemon.run_once(setting) if once else daemon.run_forever(setting)


@click.command("rescan")
@click.option("--source", help="Only this source.")
@click.pass_obj
def rescan(session: Session, source: str | None) -> int:
    """Read everything again from the beginning; no number changes."""
    from kbd import daemon  # noqa: PLC0415 - brings watchdog and the matcher, which no other command needs

    names = [known.name for known in session.config.sources]
    if source is not None and source not in names:
        raise UsageError(f"no source is named {source!r}", hint=f"known: {', '.join(names)}")
    setting = daemon.Setting(session.load, session.state_dir, session.env, session.home, session.now)
    return daemon.rescan(setting, source)
