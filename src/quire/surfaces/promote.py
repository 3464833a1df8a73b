"""Moving a ledger to another store, so that never two fleets work on the same records (protocol 25).

The source is sealed: nothing begins there any more, only receipts of acts under way still land. When it is quiet, every
row is copied into a target that is closed from its first moment; source and target are compared, table by table; the
target is opened by one commit that can happen once; only then the source says where its records went.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from quire.clock import SYSTEM, Clock, iso, new_id
from quire.errors import IllegalMove, InputError, LedgerError, LedgerUnavailable
from quire.ledger.base import Ledger
from quire.ledger.rows import TABLES, key_of
from quire.model.change import Applied, Change, Order, Query
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record
from quire.model.side import EVERYWHERE, Bucket, Control, Fanin, Setting, Signal, Worker

#: In this order: a record comes before what names it.
ORDER: tuple[type[Any], ...] = (Control, Setting, Worker, Record, Receipt, Signal, Fanin, Bucket, Event)
#: A beat that was under way when the ledger was sealed may still land: leases are copied, but not compared.
_MOVING = frozenset({Worker})
#: Names the commit that opened a ledger.
OPENED = "promoted"
_PAGE = 1000

Tell = Callable[[str], None]


class Summary(NamedTuple):
    """A table in two numbers."""

    rows: int
    hash: str


class Promoted(NamedTuple):
    source: str
    target: str
    tables: dict[str, Summary]
    last_seq: int


async def promote(
    source: Ledger, target: Ledger, *, by: str, wait: float = 300.0, clock: Clock = SYSTEM, tell: Tell = lambda _: None
) -> Promoted:
    """Move everything from ``source`` to ``target``. Until the target is opened, ``abort`` takes it all back."""
    if await target.setting(OPENED) is not None:
        return await _finished(source, target, by)
    await source.order(Order("seal", EVERYWHERE, by, target=f"(on their way to) {target.url}"))
    tell("sealed the source: nothing begins there any more")
    try:
        await _quiet(source, wait, clock, tell)
        await _closed(target, source.url, by)
        before = await summaries(source)
        await _copied(source, target, tell)
        after, there = await summaries(source), await summaries(target)
        _compare(before, after, "the source changed while it was copied")
        _compare(after, there, "the copy differs from the source")
    except BaseException:
        tell("it did not work; the source is open again with: quire promote --abort")
        raise
    tell(f"compared {len(there)} tables: {sum(row.rows for row in there.values())} rows, all equal")
    last = await _last_seq(target)
    told = dump({"source": source.url, "last_seq": last, "hash": _over(there), "by": by, "at": iso(clock.now())})
    if not await target.keep(Setting(OPENED, told, 0)):
        raise IllegalMove(f"{target.url} was opened by somebody else at this very moment")
    await target.order(Order("unseal", EVERYWHERE, by))
    await source.order(Order("seal", EVERYWHERE, by, target=target.url))
    tell("opened the target; the source says where its records are")
    return Promoted(source.url, target.url, there, last)


async def abort(source: Ledger, target: Ledger, *, by: str) -> None:
    """Open the source again. Refused once the target was opened: then there would be two."""
    if await target.setting(OPENED) is not None:
        raise IllegalMove(f"{target.url} was opened already; the source stays sealed")
    await source.order(Order("unseal", EVERYWHERE, by))


async def carry_late(source: Ledger, target: Ledger) -> int:
    """Receipts that landed in the source after the copy are carried over. May be repeated."""
    carried = 0
    after = ""
    while page := await source.find(Query(after=after, limit=500)):
        after = page[-1].record_id
        ids = [record.record_id for record in page]
        there = {receipt.key: receipt for receipt in await target.receipts(record_ids=ids)}
        for receipt in await source.receipts(record_ids=ids):
            known = there.get(receipt.key)
            done = receipt.kind in (Kind.ONCE, Kind.UNDO) and receipt.stage is not Stage.INTENDED
            if done and known is not None and known.open:
                change = Change(new_id(), receipt.record_id, 0, None, receipts=(receipt,))
                [verdict] = await target.commit([change])
                carried += isinstance(verdict, Applied)
    return carried


async def _finished(source: Ledger, target: Ledger, by: str) -> Promoted:
    """The target was opened before: by this very promotion, which was interrupted right after, or by another."""
    kept = await target.setting(OPENED)
    assert kept is not None
    told = parse(kept.value)
    standing = await source.standing()
    if told["source"] != source.url or not standing.sealed:
        raise IllegalMove(f"{target.url} was opened already, with the records of {told['source']}; it is opened once")
    if (await target.standing()).sealed.startswith(_FILLING):
        await target.order(Order("unseal", EVERYWHERE, by))
    await source.order(Order("seal", EVERYWHERE, by, target=target.url))
    return Promoted(source.url, target.url, {}, int(told["last_seq"]))


async def _quiet(source: Ledger, wait: float, clock: Clock, tell: Tell) -> None:
    """Until no effect is under way that may still be acted upon."""
    end = clock.boottime() + wait
    told = 0
    while under_way := (await source.standing()).under_way:
        if clock.boottime() >= end:
            raise LedgerUnavailable(f"{len(under_way)} effects are still under way after {wait:g} s; try again later")
        if len(under_way) != told:
            told = len(under_way)
            tell(f"waiting for {told} effects that are under way")
        await clock.sleep(0.1)


_FILLING = "(being filled from)"


async def _closed(target: Ledger, source: str, by: str) -> None:
    """The target is closed, and empty."""
    standing = await target.standing()
    if standing.sealed and not standing.sealed.startswith(_FILLING):
        raise IllegalMove(f"{target.url} is sealed: its records are at {standing.sealed}")
    if await target.counts():
        if standing.sealed:
            raise IllegalMove(f"{target.url} holds part of an earlier copy; begin with an empty one")
        raise IllegalMove(f"{target.url} has records of its own; a ledger is promoted into an empty one")
    await target.order(Order("seal", EVERYWHERE, by, target=f"{_FILLING} {source}"))


async def _copied(source: Ledger, target: Ledger, tell: Tell) -> None:
    epoch = (await source.standing()).epoch
    for type_ in ORDER:
        count = 0
        after: tuple[Any, ...] = ()
        while page := await source.dump(type_, after=after, limit=_PAGE):
            await target.restore(type_, page, epoch)
            after = key_of(page[-1])
            count += len(page)
        tell(f"copied {count} {TABLES[type_][0]}")


async def summaries(ledger: Ledger) -> dict[str, Summary]:
    """How many rows each table has, and a hash over them in the order of their keys."""
    found = {"ledger": Summary((await ledger.standing()).epoch, "")}
    for type_ in ORDER:
        if type_ in _MOVING:
            continue
        digest, count = hashlib.sha256(), 0
        after: tuple[Any, ...] = ()
        while page := await ledger.dump(type_, after=after, limit=_PAGE):
            for row in page:
                if isinstance(row, Setting) and row.name == OPENED:
                    continue
                digest.update(dump([_plain(value) for value in row]).encode())
                count += 1
            after = key_of(page[-1])
        found[TABLES[type_][0]] = Summary(count, digest.hexdigest())
    return found


def _plain(value: Any) -> Any:
    """The same for every store: a number is a number, whether it came back whole or not."""
    return repr(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _compare(one: dict[str, Summary], other: dict[str, Summary], what: str) -> None:
    for name, summary in one.items():
        if other[name] != summary:
            raise LedgerError(f"{what}: {name} has {summary.rows} rows in one and {other[name].rows} in the other")


def _over(tables: dict[str, Summary]) -> str:
    return hashlib.sha256(dump({name: list(row) for name, row in sorted(tables.items())}).encode()).hexdigest()


async def _last_seq(ledger: Ledger) -> int:
    last = 0
    while page := await ledger.dump(Event, after=(last,) if last else (), limit=_PAGE * 10):
        last = page[-1].seq
    return last


def check_addresses(source: str, target: str) -> None:
    if source == target:
        raise InputError("the source and the target are the same ledger")
