"""The screen of `kbd status`: what is wrong first, then the numbers, then what comes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import click

from kbd.cli.output import Column, ago, counted, fit, safe, sized, table, terminal_width, wrapped
from kbd.service.status.sums import deferred, overruled, pending_entries
from kbd.service.status.values import Situation, Status

HEALTH_COLOURS = {"ok": "green", "degraded": "yellow", "down": "red"}
DUE_SHOWN = 5
PREDICATES_SHOWN = 3
PROBLEMS_SHOWN = 3


class Screen:
    """The lines that say a status to a person."""

    def __init__(self, told: Situation, said: Status) -> None:
        """Take what status was told and what it said."""
        self.told, self.said = told, said
        self.columns = terminal_width()

    def lines(self) -> Iterator[str]:
        """Yield the screen, line by line."""
        yield self._health()
        yield from self._reasons()
        yield from self._sources()
        yield from self._bases()
        yield from self._relations()
        yield from self._decay()
        yield from self._pending()
        yield from self._overruled()
        yield from self._problems()

    def _health(self) -> str:
        health = click.style(self.said.health, fg=HEALTH_COLOURS[self.said.health], bold=True)
        daemon, beat = self.said.daemon, self.told.sign.heartbeat
        if not daemon.running:
            return f"{health}  no daemon runs"
        parts = [f"pid {daemon.pid or 'unknown'}"]
        if daemon.since is not None and beat is not None:
            parts.append(f"up {ago((self.told.real_now - beat.since).total_seconds())}")
            parts.append(f"kbd {daemon.version}")
            parts.append(beat.watching)
            if beat.scan_every_seconds:
                parts.append(f"all files looked at every {ago(beat.scan_every_seconds)}")
            if beat.last_pass_at:
                parts.append(f"last pass {ago((self.told.real_now - beat.last_pass_at).total_seconds())} ago")
        return wrapped(f"{health}  {safe(', '.join(parts))}", self.columns, 2).lstrip()

    def _reasons(self) -> Iterator[str]:
        for reason in self.said.reasons:
            yield wrapped(f"{click.style(reason.code, fg='yellow')}  {safe(reason.what)}", self.columns, 4)
            if reason.remedy:
                yield wrapped(f"  → {safe(reason.remedy)}", self.columns, 6)

    def _sources(self) -> Iterator[str]:
        if not self.said.sources:
            return
        yield ""
        columns = [
            Column("source"),
            *(Column(name, "right") for name in ("files", "size", "lag", "records", "messages", "unknown", "bad")),
            Column("last record"),
        ]
        rows = [
            [
                safe(s.name),
                f"{s.files:,}",
                sized(s.bytes),
                sized(s.lag_bytes),
                f"{s.records:,}",
                f"{s.messages:,}",
                f"{s.unknown:,}",
                f"{s.malformed:,}",
                self._since(s.last_record_at),
            ]
            for s in self.said.sources
        ]
        yield from table(columns, rows)

    def _since(self, at: str | None) -> str:
        if at is None:
            return "never"
        return f"{ago((self.told.now - datetime.fromisoformat(at)).total_seconds())} ago"

    def _bases(self) -> Iterator[str]:
        yield ""
        columns = [
            Column("base"),
            *(
                Column(name, "right")
                for name in ("active", "dormant", "archived", "refs 7 d", "30 d", "tokens", "pending")
            ),
        ]
        rows = [
            [
                safe(b.name),
                *(f"{b.by_state.get(state, 0):,}" for state in ("active", "dormant", "archived")),
                f"{b.refs_7d:,}",
                f"{b.refs_30d:,}",
                f"{b.tokens:,}",
                f"{b.pending_writes:,}",
            ]
            for b in self.said.bases
        ]
        yield from table(columns, rows)
        for base in self.said.bases:
            types = ", ".join(f"{number:,} {name}" for name, number in base.by_type.items())
            lead = f"{base.name}: " if len(self.said.bases) > 1 else ""
            dumb = f"; {counted(base.unmatchable, 'title')} can never match" if base.unmatchable else ""
            if types:
                yield fit(safe(f"  {lead}{types}{dumb}"), self.columns)

    def _relations(self) -> Iterator[str]:
        sums = self.said.relations
        if not sums.total:
            return
        most = list(sums.by_predicate.items())[:PREDICATES_SHOWN]
        named = ", ".join(f"{number:,} {name}" for name, number in most)
        rest = ", …" if len(sums.by_predicate) > PREDICATES_SHOWN else ""
        yield ""
        text = f"relations  {sums.total:,} ({named}{rest}), {sums.coverage:.0%} of the entries have one"
        yield fit(safe(text), self.columns)

    def _decay(self) -> Iterator[str]:
        decay = self.said.decay
        if decay.next_run is None:
            return
        following = datetime.fromisoformat(decay.next_run).astimezone(self.told.zone)
        yield ""
        yield f"decay  last {decay.last_run or 'never'}, next {following:%Y-%m-%d %H:%M}"
        for due in decay.due[:DUE_SHOWN]:
            days = (date.fromisoformat(due.on) - self.told.today) // timedelta(days=1)
            when = f"in {counted(days, 'day')}" if days > 0 else "now"
            yield fit(f"  {when:>9}  {due.to:8}  {due.handle}  {safe(due.title)}", self.columns)
        if len(decay.due) > DUE_SHOWN:
            yield f"  {len(decay.due) - DUE_SHOWN:,} more within a week"

    def _pending(self) -> Iterator[str]:
        why = deferred(self.told)
        files: dict[str, int] = {}
        for base in self.told.bases:
            for entry in pending_entries(base):
                files[entry.file] = files.get(entry.file, 0) + 1
        if files:
            yield from ("", "pending writes")
        for path, number in files.items():
            text = f"{path}: {counted(number, 'entry')}; {why.get(path, 'at the next pass')}"
            yield wrapped(safe(text), self.columns, 4)

    def _overruled(self) -> Iterator[str]:
        edits = overruled(self.told)
        if edits:
            yield from ("", "hand edits overruled in the last 7 days")
        for edit in edits:
            yield wrapped(safe(f"{edit.at[:10]}  {edit.title}: {edit.detail}"), self.columns, 4)

    def _problems(self) -> Iterator[str]:
        told = tuple(reason.what for reason in self.said.reasons)
        rest = [
            p
            for p in self.said.problems
            if p.code != "overruled" and not any(f"{p.where}: {p.what}" in t for t in told)
        ]
        if not rest:
            return
        yield from ("", counted(len(rest), "problem"))
        for p in rest[:PROBLEMS_SHOWN]:
            yield fit(safe(f"  {p.where}: {p.what}"), self.columns)
        if len(rest) > PROBLEMS_SHOWN:
            yield f"  {len(rest) - PROBLEMS_SHOWN:,} more; `kbd lint` and `kbd doctor` name them"
