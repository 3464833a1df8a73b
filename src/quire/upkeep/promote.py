"""Moving a ledger to another store, so that never two fleets work on the same records (protocol 25).

The source is sealed: nothing begins there any more, only receipts of acts under way still land. When it is quiet, every
row is copied into a target that is closed from its first moment; source and target are compared, table by table; the
target is opened by one commit that can happen once; only then the source says where its records went.

Whoever moves, or takes back, may be killed at any moment or have a double, so each write says over what it is made:

- the mark in the target counts the attempts to fill it. A later attempt, and ``abort``, replace it; the target is
  opened over the mark of one's own attempt. So an attempt that was taken back, or overtaken, opens nothing any more;
- a seal is replaced only over the seal that was seen, and names the attempt. So a source goes to one target at a time,
  and whoever takes back late does not open a ledger under an attempt that came since.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from quire.clock import SYSTEM, Clock, iso, new_id
from quire.errors import IllegalMove, InputError, LedgerError, LedgerUnavailable, Moved, ValueRefused
from quire.explain.words import command
from quire.ledger.base import Ledger
from quire.ledger.columns import TABLES, key_of
from quire.ledger.finding import concealed, sqlite_path
from quire.model.change import Applied, Change, Order, Query
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record
from quire.model.row import as_dict, field_values
from quire.model.side import EVERYWHERE, Bucket, Control, Fanin, Setting, Signal, Worker

#: In this order: a record comes before what names it.
ORDER: tuple[type[Any], ...] = (Control, Setting, Worker, Record, Receipt, Signal, Fanin, Bucket, Event)
#: A beat that was under way when the ledger was sealed may still land: leases are copied, but not compared.
_MOVING = frozenset({Worker})
#: The mark of a target: which attempt fills it, or which commit opened it. It belongs to one ledger and is not copied.
OPENED = "promoted"
#: The seal of a source whose target is not open yet, and that of a target; an address follows.
_LEAVING = re.compile(r"\(on their way to(?:; attempt \d+)?\) ")
_FILLING = re.compile(r"\(being filled from(?:; attempt \d+)?\) ")
_SAME = "the source and the target are the same ledger"
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


class Way(StrEnum):
    """How far a source is on its way to a target."""

    OPEN = "open"
    LEAVING = "leaving"
    MOVED = "moved"


class _Mark(NamedTuple):
    body: dict[str, Any]
    version: int

    @property
    def opened(self) -> bool:
        return "last_seq" in self.body


async def promote(
    source: Ledger, target: Ledger, *, by: str, wait: float = 300.0, clock: Clock = SYSTEM, tell: Tell = lambda _: None
) -> Promoted:
    """Move everything from ``source`` to ``target``. Until the target is opened, ``abort`` takes it all back."""
    mark = await _mark(source, target)
    if mark.opened:
        return await _finished(source, target, mark, by)
    if await way(source, target.url) is Way.MOVED:
        raise Moved(
            f"the records of {_shown(source)} were moved to {_shown(target)} before, but the ledger that is there now "
            "was not opened with them; find the one that was"
        )
    await _check_fillable(source, target)
    attempt = await _begun(source, target, mark)
    seal = await _leave(source, target, attempt, by)
    tell("sealed the source: nothing begins there any more")
    try:
        await _quiet(source, wait, clock, tell)
        await _closed(source, target, attempt, by)
        before = await summaries(source)
        await _copied(source, target, tell)
        after, there = await summaries(source), await summaries(target)
        _compare(before, after, "the source changed while it was copied; promote again")
        _compare(after, there, "the copy differs from the source; begin with an empty target")
    except InputError:
        # To repeat it cannot help: something must be corrected first.
        if await _taken_back(source, target, attempt, seal, by):
            tell("it did not work; the source is open again")
        raise
    except BaseException:
        tell(f"it did not work; the source stays sealed until it does, or until: {_command(source, target, '--abort')}")
        raise
    tell(f"compared {len(there)} tables: {sum(row.rows for row in there.values())} rows, all equal")
    last = await _last_seq(target)
    body = dump({"source": _shown(source), "last_seq": last, "hash": _over(there), "by": by, "at": iso(clock.now())})
    if not await target.keep(Setting(OPENED, body, attempt)):
        raise _outrun(target)
    await _open_target(target, by)
    await source.order(Order("seal", EVERYWHERE, by, target=_shown(target)))
    tell("opened the target; the source says where its records are")
    return Promoted(source.url, target.url, there, last)


async def abort(source: Ledger, target: Ledger, *, by: str, gone: bool = False) -> None:
    """Open the source again. Refused once the target was opened: then there would be two.

    ``gone``: the target's file is not there any more, so that nothing can run in it; it is not asked.
    """
    while True:
        # In this order: the seal that is taken away is not newer than the mark that is replaced.
        seal = (await source.standing()).sealed
        match _way(_shown(source), seal, target.url):
            case Way.OPEN:
                raise IllegalMove(f"{_shown(source)} is not sealed: there is nothing to take back")
            case Way.MOVED:
                raise _opened_already(target)
        if gone:
            done = await _unsealed(source, seal, by)
        else:
            mark = await _mark(source, target)
            if mark.opened:
                raise _opened_already(target)
            done = await _taken_back(source, target, mark.version, seal, by)
        if done:
            return


async def carry_late(source: Ledger, target: Ledger) -> int:
    """Receipts that landed in the source after the copy are carried over. May be repeated."""
    stands = await way(source, target.url)
    if stands is Way.OPEN or not (await _mark(source, target)).opened:
        raise IllegalMove(
            f"the records of {_shown(source)} were not moved to {_shown(target)}; first: {_command(source, target)}"
        )
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


# -- addresses -----------------------------------------------------------------------------------------------------


def check_addresses(source: str, target: str) -> None:
    """Two ledgers that outlive the command."""
    if "memory:" in (source, target):
        raise InputError("memory: ends with this command, and its records with it; name a ledger that stays")
    if _place(source) == _place(target):
        raise InputError(_SAME)


def _place(url: str) -> str:
    """What an address means, however it is spelt: links and dots are followed, a password does not matter."""
    path = sqlite_path(url)
    if path is not None:
        return f"sqlite:///{Path(path).resolve()}"
    return concealed(url).replace(":…@", "@")


def _shown(ledger: Ledger) -> str:
    """The address for everybody to read: seals and marks, too, are shown to all who ask."""
    return concealed(ledger.url)


def _command(source: Ledger, target: Ledger, options: str = "") -> str:
    return command("promote", _shown(source), _shown(target), options=options)


# -- how the two stand ---------------------------------------------------------------------------------------------


async def way(source: Ledger, target: str) -> Way:
    """Return how far the source is on its way to this target. Refused if its records are, or go, anywhere else."""
    return _way(_shown(source), (await source.standing()).sealed, target)


def _way(source: str, sealed: str, target: str) -> Way:
    if not sealed:
        return Way.OPEN
    if _FILLING.match(sealed):
        origin = concealed(_FILLING.sub("", sealed, count=1))
        raise IllegalMove(f"{source} holds part of a copy only; first: {command('promote', origin, source)}")
    there = _LEAVING.sub("", sealed, count=1)
    leaving = there != sealed
    if _place(there) == _place(target):
        return Way.LEAVING if leaving else Way.MOVED
    there = concealed(there)
    if leaving:
        back = command("promote", source, there, options="--abort")
        raise IllegalMove(f"the records of {source} are on their way to {there}; this takes them back: {back}")
    raise Moved(f"the records of {source} are at {there}; use that address")


async def _mark(source: Ledger, target: Ledger) -> _Mark:
    kept = await target.setting(OPENED)
    if kept is None:
        return _Mark({}, 0)
    # A promotion once copied the mark of its source along: such a one says nothing about this target.
    copied = kept == await source.setting(OPENED)
    return _Mark({} if copied else parse(kept.value), kept.version)


def _opened_already(target: Ledger) -> IllegalMove:
    return IllegalMove(f"{_shown(target)} was opened already; the source stays sealed")


def _outrun(target: Ledger) -> IllegalMove:
    return IllegalMove(f"another promotion, or its --abort, came between: {_shown(target)} was not opened; begin again")


async def _check_fillable(source: Ledger, target: Ledger) -> None:
    """The target has nothing of its own; it may have part of an earlier copy of this source."""
    where = _shown(target)
    sealed = (await target.standing()).sealed
    if _FILLING.match(sealed):
        origin = _FILLING.sub("", sealed, count=1)
        if _place(origin) != _place(source.url):
            raise IllegalMove(f"{where} holds part of a copy of {concealed(origin)}; begin with an empty one")
        return
    if sealed:
        raise IllegalMove(f"{where} is sealed: its records are at {concealed(sealed)}")
    if await target.counts():
        raise IllegalMove(f"{where} has records of its own; a ledger is promoted into an empty one")
    for type_ in (Control, Setting):
        known = {key_of(row) async for row in _rows(source, type_)}
        async for row in _rows(target, type_):
            if key_of(row) not in known:
                what = f"{TABLES[type_][0]} of its own ({key_of(row)[0]!r})"
                raise IllegalMove(f"{where} has {what}; a ledger is promoted into an empty one")


# -- the moves, in order -------------------------------------------------------------------------------------------


async def _begun(source: Ledger, target: Ledger, mark: _Mark) -> int:
    """From here on only this attempt may open the target. Before the source is sealed: what is taken back has begun."""
    body = dump({"source": _shown(source), "filling": new_id()})
    if not await target.keep(Setting(OPENED, body, mark.version)):
        raise _outrun(target)
    return mark.version + 1


async def _leave(source: Ledger, target: Ledger, attempt: int, by: str) -> str:
    """The source is sealed for this attempt, over the seal of an earlier one to the same target, or none."""
    seal = f"(on their way to; attempt {attempt}) {_shown(target)}"
    before = (await source.standing()).sealed
    if _way(_shown(source), before, target.url) is Way.MOVED:
        raise _outrun(target)
    standing = await source.order(Order("seal", EVERYWHERE, by, target=seal, over=before))
    if standing.sealed != seal:
        raise _outrun(target)
    return seal


async def _quiet(source: Ledger, wait: float, clock: Clock, tell: Tell) -> None:
    """Until no effect is under way that may still be acted upon."""
    end = clock.boottime() + wait
    named = 0
    while under_way := (await source.standing()).under_way:
        if clock.boottime() >= end:
            raise LedgerUnavailable(f"{len(under_way)} effects are still under way after {wait:g} s; try again later")
        if len(under_way) != named:
            named = len(under_way)
            tell(f"waiting for {named} effects that are under way")
        await clock.sleep(0.1)


async def _closed(source: Ledger, target: Ledger, attempt: int, by: str) -> None:
    """The target is closed, and has nothing but lines that the source has, too."""
    before = (await target.standing()).sealed
    if before and before == (await source.standing()).sealed:
        raise InputError(_SAME)
    await _check_fillable(source, target)
    seal = f"(being filled from; attempt {attempt}) {_shown(source)}"
    standing = await target.order(Order("seal", EVERYWHERE, by, target=seal, over=before))
    used = not before and bool(await target.counts())
    # After the counts: while the mark is that of this attempt, no other one fills the target.
    mark = await _mark(source, target)
    if mark.opened:
        # Another attempt had opened it before this seal: it is the ledger now.
        await _open_target(target, by)
    if standing.sealed != seal or mark.version != attempt:
        raise _outrun(target)
    if used:
        await target.order(Order("unseal", EVERYWHERE, by, over=seal))
        raise IllegalMove(f"somebody began to use {_shown(target)}; a ledger is promoted into an empty one")
    await _trimmed(source, target)


async def _open_target(target: Ledger, by: str) -> None:
    """Once the mark says so, whatever seal an attempt left there is over."""
    while _FILLING.match(sealed := (await target.standing()).sealed):
        await target.order(Order("unseal", EVERYWHERE, by, over=sealed))


async def _trimmed(source: Ledger, target: Ledger) -> None:
    """Lines of an earlier copy that the source has archived since leave the target. Nothing else is ever deleted."""
    after: tuple[Any, ...] = ()
    while page := await target.dump(Event, after=after, limit=_PAGE):
        # What the source has up to there, it had at the earlier copy: not more lines than the target.
        known = set(await source.dump(Event, after=after, limit=len(page)))
        if old := [event for event in page if event not in known]:
            await target.forget(old)
        after = key_of(page[-1])


async def _copied(source: Ledger, target: Ledger, tell: Tell) -> None:
    epoch = (await source.standing()).epoch
    for type_ in ORDER:
        count = 0
        async for page in _pages(source, type_):
            await _restored(target, type_, page, epoch)
            count += len(page)
        tell(f"copied {count} {TABLES[type_][0]}")


async def _restored(target: Ledger, type_: type[Any], page: Sequence[Any], epoch: int) -> None:
    try:
        await target.restore(type_, page, epoch)
    except ValueRefused:
        # One by one, to name the row.
        for row in page:
            try:
                await target.restore(type_, [row], epoch)
            except ValueRefused as error:
                raise _unkept(target, row, error) from error
        raise


def _unkept(target: Ledger, row: Any, error: ValueRefused) -> ValueRefused:
    nul = [name for name, value in as_dict(row).items() if isinstance(value, str) and "\0" in value]
    what = f"its {nul[0]} holds a NUL character" if nul else str(error)
    record_id = getattr(row, "record_id", "")
    where = f"the record {record_id!r}" if record_id else f"{key_of(row)[0]!r}"
    remedy = "correct the step that wrote it and let it write anew" if record_id else "write it anew without"
    if record_id:
        remedy += f" ({command('retry', record_id, options='--from STEP')})"
    table = "" if isinstance(row, Record) else f" (table {TABLES[type(row)][0]})"
    return ValueRefused(f"{where}{table} cannot be kept in {_shown(target)}: {what}; {remedy}, then promote again")


async def _taken_back(source: Ledger, target: Ledger, attempt: int, seal: str, by: str) -> bool:
    """The source is open again; False: another attempt came between, and has it in hand."""
    body = dump({"source": _shown(source), "aborted": by})
    return await target.keep(Setting(OPENED, body, attempt)) and await _unsealed(source, seal, by)


async def _unsealed(source: Ledger, seal: str, by: str) -> bool:
    return not (await source.order(Order("unseal", EVERYWHERE, by, over=seal))).sealed


async def _finished(source: Ledger, target: Ledger, mark: _Mark, by: str) -> Promoted:
    """The target was opened before: by this very promotion, which was interrupted right after, or by another."""
    origin = mark.body["source"]
    if _place(origin) != _place(source.url) or await way(source, target.url) is Way.OPEN:
        raise IllegalMove(
            f"{_shown(target)} was opened already, with the records of {concealed(origin)}; it is opened once"
        )
    await _open_target(target, by)
    await source.order(Order("seal", EVERYWHERE, by, target=_shown(target)))
    return Promoted(source.url, target.url, {}, int(mark.body["last_seq"]))


# -- comparing -----------------------------------------------------------------------------------------------------


async def _pages(ledger: Ledger, type_: type[Any]) -> AsyncIterator[list[Any]]:
    """Yield the rows of a table, page by page, without the ledger's own mark."""
    after: tuple[Any, ...] = ()
    while page := await ledger.dump(type_, after=after, limit=_PAGE):
        after = key_of(page[-1])
        yield [row for row in page if not (type_ is Setting and row.name == OPENED)]


async def _rows(ledger: Ledger, type_: type[Any]) -> AsyncIterator[Any]:
    async for page in _pages(ledger, type_):
        for row in page:
            yield row


async def summaries(ledger: Ledger) -> dict[str, Summary]:
    """Return how many rows each table has, and a hash over them in the order of their keys."""
    found = {"ledger": Summary((await ledger.standing()).epoch, "")}
    for type_ in ORDER:
        if type_ in _MOVING:
            continue
        digest, count = hashlib.sha256(), 0
        async for row in _rows(ledger, type_):
            digest.update(dump([_plain(value) for value in field_values(row)]).encode())
            count += 1
        found[TABLES[type_][0]] = Summary(count, digest.hexdigest())
    return found


def _plain(value: Any) -> Any:
    """Return the same for every store: a number is a number, whether it came back whole or not."""
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
