"""What is stuck and why: everything that does not go on by itself, one finding for each cause.

The chat asks it, and alerts are made of it. A cause is an error without what differs from record to record, a question,
an effect in doubt, a step that no live worker knows, a halt, a pause, or a periodic caller that is late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from quire.clock import iso
from quire.explain import words
from quire.explain.why import Around, why_of
from quire.ledger.base import Ledger
from quire.ledger.workers import alive, knowers
from quire.model.change import Count, Query, Standing
from quire.model.codec import parse
from quire.model.record import UNDO, Record, Status
from quire.model.side import EVERYWHERE, Worker
from quire.model.wait import On, load_waits
from quire.worker.last_tick import comes, last_tick
from quire.worker.slices import step_times, too_long

#: Under this name the panel keeps how each table of people's stands.
TABLES = "table/"
#: So many records are read of each kind; the counts are of all.
LOOKED = 2000
NAMED = 20
#: A record that is due for less than this is not stuck: somebody is about to take it.
PATIENCE_SECONDS = 60.0
#: So much of a record's error is quoted.
_TEXT = 300

_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)


class Finding(NamedTuple):
    """One cause, and the records that it holds."""

    #: too long, error, asks, budget, doubt, stranded, no worker, halted, paused, sealed, late, table
    kind: str
    #: What tells this cause from others; the same as long as it lasts.
    cause: str
    sentence: str
    since: float
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nobody needs
    record_ids: Sequence[str] = ()
    workflow: str = ""
    step: str = ""
    remedy: str = ""
    #: The newest moment at which a record came to it.
    latest: float = 0.0


def cause_of(error: str) -> str:
    """Return an error without what differs from record to record: names in quotes, numbers, ids."""
    first = next(iter(error.strip().splitlines()), "")
    return _VARYING.sub("…", first)[:300] or "no reason was given"


async def look(ledger: Ledger, groups: Mapping[str, Sequence[str]] | None = None) -> list[Finding]:
    """Everything that is stuck now, what holds most first within its kind. ``groups``: of people, if they are known."""
    standing = await ledger.standing()
    workers = await ledger.workers()
    counts = await ledger.counts()
    found = [*orders(standing), *await _late(ledger, workers, standing.now)]
    if any(count.status is Status.ERROR for count in counts):
        failed = await ledger.find(Query(status=(Status.ERROR,), limit=LOOKED, order="updated"))
        found += errors(failed, counts)
    if any(count.status is Status.NEEDS_APPROVAL for count in counts):
        asking = await ledger.find(Query(status=(Status.NEEDS_APPROVAL,), limit=LOOKED, order="updated"))
        found += questions(asking, Around(standing.now, standing, workers, groups=groups))
    return found + await _unclaimed(ledger, counts, standing, workers) + await tables(ledger)


async def tables(ledger: Ledger) -> list[Finding]:
    """Tables of people's that nothing is started from, and rows of theirs that are not as they should be."""
    found = []
    for setting in await ledger.settings(TABLES):
        kept = parse(setting.value)
        texts = [kept["problem"]] if kept["problem"] else [f"{kept['tab']!r}: {text}" for text in kept["named"]]
        remedy = "quire table go" if kept["problem"] and not kept["begun"] else "quire doctor"
        found += [
            Finding("table", text, text, kept["since"], workflow=kept["workflow"], remedy=remedy) for text in texts
        ]
    return found


def orders(standing: Standing) -> Iterable[Finding]:
    """Halts, pauses and the seal."""
    for control in standing.controls:
        for word, holds in (("halted", control.halted), ("paused", control.paused)):
            if not holds:
                continue
            what = "the ledger" if control.scope == EVERYWHERE else f"workflow {control.scope!r}"
            remedy = words.command("resume", "" if control.scope == EVERYWHERE else control.scope)
            by = f" by {control.by}" if control.by else ""
            reason = f": {control.reason}" if control.reason else ""
            text = f"{what} is {word}{by} since {words.when(control.at, standing.now)}{reason} ({remedy})"
            scope = "" if control.scope == EVERYWHERE else control.scope
            yield Finding(word, f"{control.scope} {control.at!r}", text, control.at, workflow=scope, remedy=remedy)
    if standing.sealed:
        yield Finding("sealed", standing.sealed, f"the ledger is sealed; its records are at {standing.sealed}", 0.0)


def errors(failed: Sequence[Record], counts: Sequence[Count]) -> Iterable[Finding]:
    """Records in ERROR, one finding for each cause. What was not read is counted with the largest group of its step."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in failed:
        groups.setdefault((record.workflow, record.step, cause_of(record.last_error or "")), []).append(record)
    for (workflow, step, cause), records in sorted(groups.items(), key=lambda item: -len(item[1])):
        ids = [record.record_id for record in records[:NAMED]]
        some = f"{len(records)} records of {workflow!r}" if len(records) > 1 else repr(ids[0])
        remedy = words.command("retry", ids[0]) if len(records) == 1 else f"quire retry --workflow {workflow}"
        text = f"{some} stopped in ERROR at step {step!r}: {_short(records[0].last_error)} ({remedy})"
        since, latest = records[-1].updated_at, records[0].updated_at
        yield Finding(
            "error", f"{workflow} {step} {cause}", text, since, len(records), ids, workflow, step, remedy, latest
        )
    total = sum(count.count for count in counts if count.status is Status.ERROR)
    if total > len(failed) and failed:
        text = f"{total - len(failed)} older records are in ERROR too (quire list --status ERROR)"
        yield Finding(
            "error", "older", text, failed[-1].updated_at, total - len(failed), remedy="quire list --status ERROR"
        )


def questions(asking: Sequence[Record], around: Around) -> Iterable[Finding]:
    """What people are asked: one finding for each question, since each wants its own answer."""
    for record in asking:
        waits = [wait for wait in load_waits(record.waits) if wait.on in (On.QUESTION, On.DOUBT)]
        if not waits:
            continue
        why = why_of(record, around)
        kind = "doubt" if waits[0].on is On.DOUBT else "budget" if _of_budget(waits[0].about) else "asks"
        about = waits[0].about or {}
        hash_ = str(about.get("hash") or waits[0].key)
        # A reminder, and an escalation, is a cause of its own: people hear of it again, whatever the quiet period.
        calls = about.get("calls", 0)
        yield Finding(
            kind,
            f"{record.record_id} {hash_}" + (f" {calls}" if calls else ""),
            f"reminder {calls}: {why.sentence}" if calls else why.sentence,
            record.updated_at,
            1,
            [record.record_id],
            record.workflow,
            record.step,
            why.remedy,
            record.updated_at,
        )


def _of_budget(about: Mapping[str, Any] | None) -> bool:
    """The question of a mission that has used up what it may spend shows its limits and what was spent."""
    show = (about or {}).get("show")
    return isinstance(show, dict) and "limits" in show and "spent" in show


async def _unclaimed(
    ledger: Ledger, counts: Sequence[Count], standing: Standing, workers: Sequence[Worker]
) -> list[Finding]:
    """Records that are due and that nobody takes: no worker lives, or none knows the step."""
    now = standing.now
    stopped = {control.scope for control in standing.controls if control.halted or control.paused}
    if EVERYWHERE in stopped or standing.sealed:
        return []
    moving = [count for count in counts if count.workflow not in stopped and count.status in _MOVING]
    live = [worker for worker in workers if alive(worker, now)]
    return await (_stranded(ledger, live, moving, now) if live else _without_workers(ledger, moving, now))


async def _without_workers(ledger: Ledger, moving: Sequence[Count], now: float) -> list[Finding]:
    """No worker lives. If ticks come, only steps that fit into no slice stay where they are."""
    tick = await last_tick(ledger)
    if tick is not None and comes(tick, now):
        return await _too_long(ledger, moving, now)
    return await _abandoned(ledger, moving, now)


async def _stranded(ledger: Ledger, live: Sequence[Worker], moving: Sequence[Count], now: float) -> list[Finding]:
    """Steps with due records that no live worker knows."""
    found = []
    for count in moving:
        if count.status is not Status.PENDING or count.step == UNDO or knowers(live, count.workflow, count.step, now):
            continue
        records = await ledger.find(Query(count.workflow, count.step, (Status.PENDING,), limit=NAMED))
        if due := [record for record in records if _overdue(record, now)]:
            found.append(_of_stranded(count, due, now))
    return found


def _of_stranded(count: Count, due: Sequence[Record], now: float) -> Finding:
    """The finding about records whose step no live worker knows."""
    since = min(record.due_at or now for record in due)
    some = f"{count.count} records" if count.count > 1 else repr(due[0].record_id)
    text = f"{some} of {count.workflow!r} at step {count.step!r} wait since {words.when(since, now)}: "
    text += "no live worker knows the step (quire worker FILE)"
    ids = [record.record_id for record in due]
    place = (count.workflow, count.step)
    return Finding("stranded", " ".join(place), text, since, count.count, ids, *place, "quire worker FILE", since)


async def _too_long(ledger: Ledger, moving: Sequence[Count], now: float) -> list[Finding]:
    """Ticks come, but a step does not fit into their slices."""
    found = []
    times = too_long(await step_times(ledger, now))
    for count in moving:
        time = times.get((count.workflow, count.step))
        if time is None or count.status is not Status.PENDING:
            continue
        records = await ledger.find(Query(count.workflow, count.step, (Status.PENDING,), limit=NAMED))
        text = f"step {count.step!r} of {count.workflow!r} does not fit into a slice of {words.span(time.slice)}: it "
        text += f"{time.words()}, so no such slice begins it; {count.count} waiting"
        remedy = f"quire tick --budget {time.fitting}s"
        place = (count.workflow, count.step)
        ids = [record.record_id for record in records]
        since = min((record.due_at or now for record in records), default=now)
        cause = " ".join(place)
        found.append(Finding("too long", cause, f"{text} ({remedy})", since, count.count, ids, *place, remedy, time.at))
    return found


_MOVING = (Status.PENDING, Status.RUNNING, Status.WAITING)


def _overdue(record: Record, now: float) -> bool:
    if record.status is Status.RUNNING:
        return record.updated_at < now - PATIENCE_SECONDS
    return record.due_at is not None and record.due_at < now - PATIENCE_SECONDS


async def _abandoned(ledger: Ledger, moving: Sequence[Count], now: float) -> list[Finding]:
    """No worker lives: one finding, however many steps wait."""
    due: list[Record] = []
    for workflow in sorted({count.workflow for count in moving}):
        records = await ledger.find(Query(workflow, status=_MOVING, limit=LOOKED))
        due += [record for record in records if _overdue(record, now)]
    if not due:
        return []
    since = min(record.due_at or record.updated_at for record in due)
    some = f"{len(due)} records are" if len(due) > 1 else f"{due[0].record_id!r} is"
    text = f"{some} due since {words.when(since, now)}, and no worker is alive (quire worker)"
    ids = [record.record_id for record in due[:NAMED]]
    return [Finding("no worker", "", text, since, len(due), ids, remedy="quire worker", latest=since)]


async def _late(ledger: Ledger, workers: Sequence[Worker], now: float) -> list[Finding]:
    """The periodic caller does not come any more, and no worker lives in its place (protocol 24)."""
    tick = await last_tick(ledger)
    if tick is None or any(alive(worker, now) for worker in workers):
        return []
    at, period = tick
    if comes(tick, now):
        return []
    text = f"the last tick was {words.when(at, now)}, one is expected every {words.span(period)} (quire tick)"
    return [Finding("late", repr(at), text, at, remedy="quire tick")]


def _short(text: str | None) -> str:
    flat = " ".join((text or "no reason was given").split())
    return flat[: _TEXT - 1] + "…" if len(flat) > _TEXT else flat


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "sentence": finding.sentence,
        "count": finding.count,
        "record_ids": list(finding.record_ids),
        "workflow": finding.workflow or None,
        "step": finding.step or None,
        "since": iso(finding.since) if finding.since else None,
        "remedy": finding.remedy or None,
    }
