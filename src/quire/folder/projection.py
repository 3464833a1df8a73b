"""From lines of the log to files: what a batch of events changes in the folder. Reads only; the projector writes.

Many lines become few files: a record that moved five times is written once, as it is now.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from quire.folder import lock, receipt, runlog, state
from quire.folder.base import Folder, Gone, Once, Rank, Replace, Write
from quire.folder.config import version_of
from quire.folder.layout import Layout
from quire.ledger.base import Ledger
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt
from quire.model.record import Record
from quire.rules.lines import LineKind

T = TypeVar("T")

#: Records whose last lines are remembered, so that a run's log need not be read again when it ends.
_REMEMBERED = 50_000
_CONFIG_SECONDS = 10.0


#: Files that show people how a record has ended, by name: as ``drafts/brief.md``, beside what its steps made.
Shown = Callable[[Ledger, Record], Awaitable[Mapping[str, bytes]]]


async def nothing(ledger: Ledger, record: Record) -> Mapping[str, bytes]:
    """No such file."""
    return {}


class Planned(NamedTuple):
    """What a batch changes."""

    writes: list[Write]
    #: The lines of the tables that change, by workflow and record.
    rows: dict[str, dict[str, list[str]]]


class _Seen(NamedTuple):
    """One record's part of a batch."""

    record: Record
    lines: list[Event]
    runs: list[runlog.Run]
    receipts: list[Receipt]
    shown: Mapping[str, bytes] = {}


class Projection:
    """Plans the files of one folder. Remembers open runs between batches; forgets safely."""

    def __init__(self, ledger: Ledger, folder: Folder, boottime: Callable[[], float], shown: Shown = nothing) -> None:
        self.ledger = ledger
        self.folder = folder
        self._boottime = boottime
        self._shown = shown
        self._layouts: dict[str, Layout] = {}
        self._open: OrderedDict[str, list[Event]] = OrderedDict()
        self._configs: dict[str, tuple[float, str]] = {}
        #: How new the state files are that were written last: what is there already is not written again.
        self._written: OrderedDict[str, Rank] = OrderedDict()

    def layout(self, workflow: str) -> Layout:
        if workflow not in self._layouts:
            self._layouts[workflow] = self.folder.layout(workflow)
        return self._layouts[workflow]

    def forget(self) -> None:
        """Remember nothing: another projector may have gone on meanwhile."""
        self._open.clear()
        self._layouts.clear()
        self._written.clear()

    async def gather(self, events: Sequence[Event]) -> tuple[list[_Seen], dict[str, str], dict[str, str]]:
        """Everything that planning these lines needs from the ledger and the folder."""
        lines: dict[str, list[Event]] = {}
        for event in events:
            lines.setdefault(event.record_id, []).append(event)
        records = {record.record_id: record for record in await self.ledger.load(list(lines))}
        unknown = [record_id for record_id, new in lines.items() if record_id in records and self._midway(new[0])]
        logs = await self.ledger.logs(unknown) if unknown else {}
        seen, wanted = [], []
        for record_id, new in lines.items():
            record = records.get(record_id)
            if record is None:
                continue
            before = _open_run(logs[record_id], new[0]) if record_id in logs else self._open.get(record_id, ())
            runs, open_ = runlog.split([*before, *new], record)
            _remember(self._open, record_id, open_)
            if runs or any(event.kind.startswith("effect.") for event in new):
                wanted.append(record_id)
            seen.append(_Seen(record, new, runs, [], await self._shown_of(record)))
        found: dict[str, list[Receipt]] = {}
        for kept in await self.ledger.receipts(record_ids=wanted) if wanted else ():
            found.setdefault(kept.record_id, []).append(kept)
        seen = [part._replace(receipts=found.get(part.record.record_id, [])) for part in seen]
        workflows = {part.record.workflow for part in seen if part.runs}
        configs = {workflow: await self._config(workflow) for workflow in workflows}
        return seen, await self.receipt_paths(seen), configs

    async def _shown_of(self, record: Record) -> Mapping[str, bytes]:
        return await self._shown(self.ledger, record) if record.ended else {}

    def _midway(self, first: Event) -> bool:
        """The line may stand within a run that is not remembered."""
        return first.record_id not in self._open and first.n != 1 and first.kind != LineKind.CLAIMED

    async def _config(self, workflow: str) -> str:
        at, version = self._configs.get(workflow, (-1e9, ""))
        if self._boottime() - at > _CONFIG_SECONDS:
            paths = await self.folder.paths(self.layout(workflow).config)
            contents = await self.folder.read(*paths)
            version = version_of({path: text for path, text in zip(paths, contents, strict=True) if text is not None})
            self._configs[workflow] = (self._boottime(), version)
        return version

    async def receipt_paths(self, parts: Iterable[_Seen]) -> dict[str, str]:
        """Where each receipt's file stands or will stand, by key and nonce.

        The first receipt of a step has the plain name. Another effect, visit or record whose plain name is the same
        finds it taken, and takes a name of its own. A forged file keeps the name that it took: ``verify`` names it.
        """
        todo = [(part, kept) for part in parts for kept in part.receipts if receipt.has_file(kept)]
        if not todo:
            return {}
        plains = [self.layout(part.record.workflow).receipt(kept.record_id, kept.step) for part, kept in todo]
        owners = dict[str, str]()
        for path, content in zip(plains, await self.folder.read(*plains), strict=True):
            if content is not None:
                owners[path] = _name(*(receipt.key_in(content) or ("", "")))
        paths = {}
        for (part, kept), plain in zip(todo, plains, strict=True):
            own = _name(kept.key, kept.nonce)
            taken = owners.setdefault(plain, own) != own
            paths[own] = self.layout(part.record.workflow).receipt_beside(kept) if taken else plain
        return paths

    def plan(self, seen: Sequence[_Seen], paths: Mapping[str, str], configs: Mapping[str, str]) -> Planned:
        """Return the files, in order: what is under way, what was done, what ran, and then how the records stand."""
        locks: list[Write] = []
        receipts: list[Write] = []
        unlocks: list[Write] = []
        logs: list[Write] = []
        states: list[Write] = []
        rows: dict[str, dict[str, list[str]]] = {}
        for part in seen:
            record, layout = part.record, self.layout(part.record.workflow)
            by_key = {kept.key: kept for kept in part.receipts}
            moments = _effect_moments(part.lines)
            for key, (began, ended) in moments.items():
                kept = by_key.get(key)
                if kept is None or kept.kind not in (Kind.ONCE, Kind.UNDO):
                    continue
                if kept.open:
                    locks.append(Replace(layout.lock(kept), lock.lock_file(kept, began)))
                    continue
                if receipt.has_file(kept) and ended is not None:  # otherwise its line comes with a later batch
                    path = paths[_name(kept.key, kept.nonce)]
                    receipts.append(Once(path, receipt.receipt_file(kept, record.workflow, ended)))
                unlocks.append(Gone(layout.lock(kept)))
            for run in part.runs:
                shown = runlog.fields(
                    run,
                    record,
                    part.receipts,
                    files=lambda kept: paths.get(_name(kept.key, kept.nonce), "").rpartition("/")[2],
                    links=lambda link: self.folder.path_of(link) is not None,
                    config=configs.get(record.workflow, ""),
                )
                logs.append(Once(layout.log(run.run_id, run.started_at), runlog.run_log(shown)))
            rank = state.rank(record)
            if self._written.get(record.record_id) == rank:
                continue
            _remember(self._written, record.record_id, rank)
            states.append(Replace(layout.state(record.record_id), state.state_file(record), rank))
            rows.setdefault(record.workflow, {})[record.record_id] = self.row(record)
            for name, content in part.shown.items():
                path = self.folder.artifacts(record.workflow).path(record.record_id, name)
                logs.append(Replace(path, content))
        return Planned([*locks, *receipts, *unlocks, *logs, *states], rows)

    def row(self, record: Record) -> list[str]:
        file = self.layout(record.workflow).state(record.record_id).rpartition("/")[2]
        return state.row(record, file)

    async def whole(self, records: Sequence[Record]) -> Planned:
        """The files of these records as they are, without their logs: for a folder that is filled anew."""
        found: dict[str, list[Receipt]] = {}
        for kept in await self.ledger.receipts(record_ids=[record.record_id for record in records]):
            found.setdefault(kept.record_id, []).append(kept)
        seen = [
            _Seen(record, [], [], found.get(record.record_id, []), await self._shown_of(record)) for record in records
        ]
        for record in records:
            self._written.pop(record.record_id, None)
        paths = await self.receipt_paths(seen)
        planned = self.plan(seen, paths, {})
        writes: list[Write] = []
        for part in seen:
            layout = self.layout(part.record.workflow)
            for kept in part.receipts:
                if receipt.has_file(kept):
                    content = receipt.receipt_file(kept, part.record.workflow, None)
                    writes.append(Once(paths[_name(kept.key, kept.nonce)], content))
                elif kept.open and kept.kind in (Kind.ONCE, Kind.UNDO):
                    writes.append(Replace(layout.lock(kept), lock.lock_file(kept, part.record.run_id)))
        # What a file says of its rank is not believed here: it may have been altered.
        states = [Replace(w.path, w.content) if isinstance(w, Replace) else w for w in planned.writes]
        return Planned([*writes, *states], planned.rows)


def _open_run(log: Sequence[Event], first: Event) -> Sequence[Event]:
    """The lines of the run that was open before this line."""
    earlier = [event for event in log if event.n < first.n]
    start = max((place for place, event in enumerate(earlier) if event.kind == LineKind.CLAIMED), default=len(earlier))
    return earlier[start:]


def _remember(memory: OrderedDict[str, T], record_id: str, value: T) -> None:
    memory[record_id] = value
    memory.move_to_end(record_id)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _name(key: str, nonce: str) -> str:
    return f"{nonce} {key}"


def _effect_moments(lines: Iterable[Event]) -> dict[str, tuple[str | None, str | None]]:
    """The effects of which these lines tell: the run in which each was intended, and the one in which it ended."""
    moments: dict[str, tuple[str | None, str | None]] = {}
    for event in lines:
        if not event.kind.startswith("effect."):
            continue
        key = parse(event.body).get("key")
        if key is None:
            continue
        began, ended = moments.get(key, (None, None))
        if event.kind == LineKind.EFFECT_INTENDED:
            began = event.run_id
        elif event.kind == LineKind.EFFECT_DONE:
            ended = event.run_id
        moments[key] = (began, ended)
    return moments
