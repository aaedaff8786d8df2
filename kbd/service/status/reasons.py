"""Why health is not ok: every reason with its stable code, its place and its remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from kbd.core.model import Problem
from kbd.core.sight import SILENT_SESSIONS
from kbd.service.status.values import Reason, Situation
from kbd.store.ledger import Ledger, standing
from kbd.store.ledger.survey import sessions_and_citations

RESTORED_DAYS = 7
USUAL_FAULTS = frozenset({"write_deferred"})
"""A write that waits its turn is the usual course; it is shown as pending."""
SEEN_ANEW = frozenset({"relations_unreadable", "no_sight", "no_citations", "format_alarm"})
"""What status judges itself at every call; what the last pass said of it may be mended by now."""
_REASON_OF_FAULT = dict.fromkeys(("source_missing", "folder_unreadable", "file_unreadable"), "source_unreadable")


def standing_faults(told: Situation) -> list[Problem]:
    """Return the standing faults, those of relations files as the edge saw them just now."""
    stored = standing.faults(told.ledger.db) if told.ledger else []
    fresh = [p for base in told.bases for p in base.problems if p.code == "relations_unreadable"]
    return [p for p in stored if p.code not in USUAL_FAULTS | SEEN_ANEW] + fresh


def reasons_of(told: Situation, faults: Sequence[Problem]) -> Iterator[Reason]:
    """Yield the reasons, those of the daemon first."""
    yield from _daemon_reasons(told)
    if told.ledger is None:
        yield Reason("never_run", "nothing was read yet", "`kbd run`, or once: `kbd run --once`")
        return
    yield from _source_reasons(told, faults)
    yield from _fault_reasons(faults)
    for problem in () if told.is_new else told.sight.reasons:
        yield Reason(problem.code, f"{problem.where}: {problem.what}", problem.hint)
    yield from _silence(told, told.ledger)
    for base in told.bases:
        if base.row is not None and not base.entries:
            yield Reason("base_empty", f"{base.name}: no entries", "check its `files` in the configuration")
    restored = told.ledger.meta("recovered_on")
    if restored and 0 <= (told.today - date.fromisoformat(restored)).days < RESTORED_DAYS:
        what = told.ledger.meta("recovered_from") or "the ledger was restored"
        yield Reason("ledger_restored", f"{restored}: {what}", "check the disk; numbers continue from the files")


def _daemon_reasons(told: Situation) -> Iterator[Reason]:
    sign = told.sign
    if sign.pause:
        yield Reason("paused", f"nothing is read, written or faded {sign.pause}", "`kbd resume` ends it")
    if sign.pid is None:
        yield Reason("daemon_down", "no daemon runs on this state directory", "`kbd run`, or `kbd service install`")
        return
    beat = sign.heartbeat
    if beat is None or beat.pid != sign.pid:
        return
    silent = (told.real_now - beat.at).total_seconds()
    if silent > told.stalled_seconds:
        yield Reason("daemon_stalled", f"no pass was finished for {silent:.0f} s", "see its log; restart it")
    if told.version and beat.version != told.version:
        what = f"the daemon is kbd {beat.version}, installed is {told.version}"
        yield Reason("daemon_outdated", what, "`kbd service install` starts it anew, or end it and `kbd run`")
    if told.config and beat.config and beat.config != told.config:
        remedy = f"`kbd service install`, or `kill -HUP {beat.pid}`"
        yield Reason("config_changed", "the daemon runs on another configuration than is there now", remedy)
    if beat.last_error:
        yield Reason("pass_failed", beat.last_error, "mend what it names; kbd tries again by itself")
    if beat.watching.startswith("polling"):
        remedy = "raise the limit that it names; folders on a network are always polled"
        yield Reason("watch_degraded", f"no file events, {beat.watching}", remedy)


def _source_reasons(told: Situation, faults: Sequence[Problem]) -> Iterator[Reason]:
    missing = {p.where for p in faults if p.code == "source_missing"}
    seen = set()
    for sums in told.own_sums:
        seen.add(told.configured_name(sums.name))
        if sums.health == "unreadable":
            yield Reason("source_unreadable", f"{sums.name}: {sums.detail or sums.root}", "mend its permissions")
        elif not sums.files and sums.root not in missing and not told.is_new:
            yield _empty(sums.name, sums.root)
        if sums.name in told.alarms:
            what = f"of {sums.records} records {sums.unknown} are of unknown kinds, {sums.malformed} damaged"
            yield Reason(
                "format_alarm", f"{sums.name}: {what}", "its format may have changed; update kbd, then `kbd rescan`"
            )
    for name, root in told.sources.items():
        if name not in seen and not told.is_new:
            yield _empty(name, root)


def _empty(name: str, root: str) -> Reason:
    return Reason(
        "source_empty", f"{name}: 0 files{f' in {root}' if root else ''}", "check its folder in the configuration"
    )


def _fault_reasons(faults: Sequence[Problem]) -> Iterator[Reason]:
    """Yield one reason for each code, with the first place and how many more there are."""
    by_code: dict[str, list[Problem]] = {}
    for fault in faults:
        by_code.setdefault(_REASON_OF_FAULT.get(fault.code, fault.code), []).append(fault)
    for code, found in by_code.items():
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield Reason(code, f"{found[0].where}: {found[0].what}{more}", found[0].hint)


def _silence(told: Situation, ledger: Ledger) -> Iterator[Reason]:
    """Sessions that cite nothing at all look like an agent without lessons, and like a matcher that sees nothing."""
    if not any(base.entries for base in told.bases):
        return
    for since in (told.today - timedelta(days=told.blind_days - 1), date.min):
        sessions, citations = sessions_and_citations(ledger.db, since, told.today)
        if sessions >= SILENT_SESSIONS and not citations:
            span = "" if since == date.min else f" in {told.blind_days} days"
            yield Reason(
                "no_citations",
                f"{sessions} sessions read{span}, 0 citations",
                "see whether agents get the lessons at all; `kbd doctor`",
            )
            return
