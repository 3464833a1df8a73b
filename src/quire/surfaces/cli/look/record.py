"""``quire show``, ``why``, ``diff``: looking at one record."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import click

from quire.client.client import Client
from quire.clock import iso
from quire.errors import InputError
from quire.explain import words
from quire.explain.why import around, why_of
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.side import Fanin, Signal
from quire.model.trace import last_trace, trace_lines
from quire.model.wait import On, load_waits
from quire.rules.difference import differing, pairs
from quire.rules.versions import Version, Versions, versions
from quire.surfaces.cli.command import Session, record_argument, verb
from quire.surfaces.cli.look.listing import of_missions
from quire.surfaces.cli.output import Output, on_one_line


class _Whole(NamedTuple):
    """All that is known of one record, as it is shown."""

    record: Record
    #: Its status; of a mission, how its agents stand.
    status: str
    why: str
    events: Sequence[Event]
    receipts: Sequence[Receipt]
    signals: Sequence[Signal]
    fanins: Sequence[Fanin]
    children: Sequence[Record]


@verb("show", example="quire show kw_analytics")
@record_argument
@click.option("--all", "all_", is_flag=True, help="The whole timeline, every trace, all receipts and children.")
def show(session: Session, record_id: str, all_: bool) -> None:
    """Show everything about record ID: where it stands, its question, timeline, receipts and children."""

    async def work(client: Client) -> None:
        whole = await _whole(session, client, record_id, everything=all_ or session.json)
        if session.json:
            session.out.emit(_as_json(whole))
        else:
            _print(session.out, whole, all_)

    session.with_client(work)


async def _whole(session: Session, client: Client, record_id: str, *, everything: bool) -> _Whole:
    record = await client.get(record_id)
    ledger = client.ledger
    children: Sequence[Record] = []
    if record.fanouts:
        query = Query(parent_id=record_id, order="place", limit=100_000 if everything else 20)
        children = await ledger.find(query)
    return _Whole(
        record=record,
        status=(await of_missions(client, [record])).get(record_id, record.status),
        why=why_of(record, await around(ledger, record, groups=session.config.groups)).sentence,
        events=await client.events(record_id, limit=1_000_000 if everything else 10_000),
        receipts=await ledger.receipts(record_ids=[record_id]),
        signals=await ledger.signals(record_id),
        fanins=await ledger.fanins(record_id),
        children=children,
    )


def _as_json(whole: _Whole) -> dict[str, Any]:
    return words.record_json(whole.record) | {
        "why": whole.why,
        "events": [words.event_json(event) for event in whole.events],
        "receipts": [words.receipt_json(receipt) for receipt in whole.receipts],
        "signals": [words.signal_json(signal) for signal in whole.signals],
        "children": [
            {"record_id": child.record_id, "status": str(child.status), "next_step": child.step}
            for child in whole.children
        ],
    }


def _print(out: Output, whole: _Whole, all_: bool) -> None:
    record = whole.record
    out.say(f"{record.record_id}   {whole.status}   {record.workflow} at {record.step or '(ended)'}", bold=True)
    out.say(whole.why)
    _question(out, record)
    out.say()
    _print_values(out, whole)
    out.say()
    _print_timeline(out, whole.events, all_)
    if whole.receipts:
        out.say()
        _print_receipts(out, whole.receipts if all_ else whole.receipts[-20:])
    for fanin in whole.fanins:
        text = f"{fanin.total} in fan-out {fanin.generation}: {fanin.left} open, {fanin.failed} failed"
        out.fact("children", text + (", left behind" if fanin.abandoned else ""))
    if whole.children:
        rows = [(child.record_id, child.status, child.step) for child in whole.children]
        out.table(("child", "status", "next_step"), rows, whole=2)


def _print_values(out: Output, whole: _Whole) -> None:
    record = whole.record
    out.fact("data", _json(record.data))
    if record.result is not None:
        out.fact("result", _json(record.result))
    for word, value in (("note", record.note), ("error", record.last_error), ("parent", record.parent_id)):
        if value:
            out.fact(word, value)
    if (failed := last_trace(record, whole.events)) is not None:
        for text in trace_lines(failed):
            out.say(f"          {text}", hang=14)
    counts = f"{record.version}   visit {record.visit}   attempt {record.attempt}   priority {record.priority}"
    out.fact("version", counts)


def _print_timeline(out: Output, events: Sequence[Event], all_: bool) -> None:
    shown = events if all_ else events[-30:]
    if len(shown) < len(events):
        out.say(f"… {len(events) - len(shown)} earlier lines (--all shows them)", dim=True)
    for event in shown:
        at = iso(event.at)[:19].replace("T", " ")
        out.say(f"  {at}Z  v{event.version:<4} {words.line(event)}", hang=30)
        for text in trace_lines(event) if all_ else ():
            out.say(f"      {text}", dim=True, hang=10)


def _print_receipts(out: Output, receipts: Sequence[Receipt]) -> None:
    rows = [
        (
            receipt.name,
            receipt.kind,
            receipt.stage,
            f"{receipt.step}/{receipt.visit}",
            iso(receipt.done_at or receipt.at)[11:19],
            on_one_line(receipt.value, 60),
        )
        for receipt in receipts
    ]
    out.table(("receipt", "kind", "stage", "step", "at", "value"), rows)


def _question(out: Output, record: Record) -> None:
    if record.status is not Status.NEEDS_APPROVAL:
        return
    for wait in load_waits(record.waits):
        about = wait.about or {}
        if wait.on not in (On.QUESTION, On.DOUBT):
            continue
        out.say()
        out.say(f"question  {about.get('text', '')}", colour="yellow", bold=True, hang=10)
        if about.get("show") is not None:
            shown = about["show"] if isinstance(about["show"], str) else json.dumps(about["show"], ensure_ascii=False)
            out.fact("shown", shown)
        edit = f"   may edit {', '.join(about['edit'])}" if about.get("edit") else ""
        out.fact("choices", " | ".join(about.get("choices", [])) + edit)
        if wait.on is On.QUESTION:
            out.fact("hash", wait.name)


def _json(text: str) -> str:
    value = json.dumps(parse(text), ensure_ascii=False)
    return value if len(value) <= 2000 else value[:2000] + f"… ({len(value):,} characters; --json shows all)"


@verb("why", example="quire why kw_analytics")
@record_argument
def why(session: Session, record_id: str) -> None:
    """Say in one sentence what record ID waits for, until when, and who can change it."""

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        why = why_of(record, await around(client.ledger, record, groups=session.config.groups))
        if session.json:
            session.out.emit(
                {
                    "record_id": record_id,
                    "status": str(record.status),
                    "why": why.sentence,
                    "kind": why.kind,
                    "until": iso(why.until) or None,
                    "remedy": why.remedy or None,
                }
            )
        else:
            session.out.say(why.sentence)

    session.with_client(work)


@verb("diff", example="quire diff kw_analytics 3 7")
@record_argument
@click.argument("first", type=click.IntRange(0), required=False)
@click.argument("second", type=click.IntRange(0), required=False)
def diff(session: Session, record_id: str, first: int | None, second: int | None) -> None:
    """Show what changed between two versions of record ID; by default between its start and now.

    The log tells what happened and what it changed; from it the data are known as they were at any version, as far back
    as its lines hold whole changes. Beyond that the oldest that is known is compared, and it says so.
    """

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        low, high = sorted((1 if first is None else first, record.version if second is None else second))
        if high > record.version:
            raise InputError(f"{record_id!r} has no version {high}: it is at version {record.version}")
        log = await client.events(record_id, limit=1_000_000)
        events = [event for event in log if low < event.version <= high]
        was, now, end = _sides(versions(record, reversed(log)), low, high)
        unknown = was.data.unknown | now.data.unknown if was is not None and now is not None else frozenset[str]()
        before, after = (_known(one.data.fields if one is not None else {}, unknown) for one in (was, now))
        if session.json:
            shown = {"record_id": record_id, "from": low, "to": high}
            shown |= {"events": [words.event_json(event) for event in events]}
            shown |= {"changes": {}, "came": [], "went": [], **pairs(before, after, differing(before, after))}
            session.out.emit(shown | {"unknown": sorted(unknown), "end": end})
            return
        out = session.out
        out.say(f"{record_id}: version {low} to {high}, by the log", bold=True)
        for event in events:
            out.say(f"  v{event.version:<4} {iso(event.at)[:19].replace('T', ' ')}Z  {words.line(event)}")
        if not events:
            out.say("  nothing")
        out.say()
        if was is not None and now is not None:
            out.say(f"data: version {max(low, was.version)} and version {high}", bold=True)
            _differences(out, before, after)
        for name in sorted(unknown):
            out.say(f"{name}: not known at both versions; it was too long for a line of the log", dim=True)
        if end:
            out.say(end, dim=True)

    session.with_client(work)


def _sides(found: Versions, low: int, high: int) -> tuple[Version | None, Version | None, str]:
    """The two versions, and why an older one than asked for is compared. The oldest that is known stands in for it."""
    now, was = found.at(high), found.at(low)
    if was is not None:
        return was, now, ""
    return found.found[-1] if now is not None else None, now, found.end


def _known(data: Mapping[str, Any], unknown: Collection[str]) -> dict[str, Any]:
    """The fields that are known at both versions."""
    return {name: value for name, value in data.items() if name not in unknown}


def _differences(out: Output, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    texts = [json.dumps(side, indent=2, ensure_ascii=False, sort_keys=True) for side in (before, after)]
    older, newer = (text.splitlines() for text in texts)
    lines = list(difflib.unified_diff(older, newer, "before", "after", lineterm="", n=1))
    for text in lines or ["nothing differs"]:
        out.say(text, colour={"+": "green", "-": "red"}.get(text[:1]))
