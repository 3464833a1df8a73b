"""The embedded ledger: one SQLite file, one machine, nothing to set up.

WAL with ``synchronous=FULL``: an acknowledged commit survives a power cut. Writers take ``BEGIN IMMEDIATE`` and wait
for each other, so nobody sees "database is locked". A whole transaction is one hop to the writing thread; beats have a
connection and a thread of their own and never wait behind a batch. Reads wait for nobody: what is read quickly is read
in the loop itself.

A lease is taken and compared on the clock of the boot (``leases``), so that a step of the wall clock closes no
live worker and keeps no dead one; only after a reboot the wall clock decides (protocol 8).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from quire.clock import SYSTEM, Clock, boot_id
from quire.errors import LedgerError, LedgerUnavailable, WorkerClosed
from quire.ledger import columns as rows
from quire.ledger.base import Ledger, Recovered, Row, Tidied, Traits
from quire.ledger.queries import migrations, query_sql, seen_status
from quire.ledger.sqlite.checkpoints import OLDEST, Checkpoints, about_library
from quire.ledger.sqlite.reads import Looks
from quire.ledger.sqlite.view import RECEIPT, RECORD, View, snapshot
from quire.ledger.sqlite.writer import write
from quire.ledger.sqlite.writer_lock import Gate
from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Send,
    Slot,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import UNDO, Record, Status
from quire.model.row import field_names, field_values, from_values, replace
from quire.model.side import Fanin, Setting, Signal, Worker
from quire.rules import claims, orders, sweeps, verbs
from quire.rules.claims import claimed_by
from quire.rules.draft import Draft
from quire.rules.orders import as_seen
from quire.rules.workers import GRACE, close, expired, overdue

T = TypeVar("T")

#: "Quir": says of the file that it is a ledger.
APPLICATION_ID = 0x51756972
#: Writers wait this long for each other before they give up.
PATIENCE_SECONDS = 60.0
#: Images kept of records that run here.
MOST_IMAGES = 20_000
#: How often an idle worker looks whether another process has written.
GLANCE_SECONDS = 0.1

#: Where the locks of SQLite do not hold.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs", "fuse.glusterfs", "glusterfs", "ceph"}
)

#: As the partial indexes have it, word by word: SQLite uses them for nothing else. Not ``IN``, for which it would make
#: a table of its own whenever a row is written.
_OPEN = "(status = 'PENDING' OR status = 'WAITING' OR status = 'NEEDS_APPROVAL')"
_CLAIMABLE = f"{_OPEN} AND due_at IS NOT NULL"
_OPEN_WORKERS = f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL"
_PUT_LEASE = "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)"


class _Images:
    """Records that run, as one connection left them: they need not be read again while no other has written."""

    def __init__(self) -> None:
        self.kept: dict[str, Record] = {}
        self.doubtful = False
        self._version = -1
        self._seen = -1

    def others_wrote(self, db: sqlite3.Connection) -> bool:
        """Another connection has written since this was asked the last time."""
        (version,) = db.execute("PRAGMA data_version").fetchone()
        seen, self._seen = self._seen, version
        return bool(seen != version)

    def check(self, db: sqlite3.Connection) -> None:
        """Forget what another connection may have changed; asked within the transaction."""
        (version,) = db.execute("PRAGMA data_version").fetchone()
        if self.doubtful or version != self._version or len(self.kept) > MOST_IMAGES:
            self.kept.clear()
        self._version, self.doubtful = version, False

    def keep(self, records: Iterable[Record]) -> None:
        """The commit of these has landed."""
        self.doubtful = False
        for record in records:
            if record.status is Status.RUNNING:
                self.kept[record.record_id] = record
            else:
                self.kept.pop(record.record_id, None)


class SqliteLedger(Ledger):
    """A ledger in one file. ``url`` is ``sqlite:///path`` or a path."""

    traits = Traits(durable=True, shared=True)

    def __init__(self, path: str | os.PathLike[str], clock: Clock = SYSTEM) -> None:
        self.path = Path(path)
        self.url = f"sqlite:///{self.path}"
        self.clock = clock
        self._threads = {name: ThreadPoolExecutor(1, f"quire-{name}") for name in ("write", "beat", "read")}
        self._connections: dict[str, sqlite3.Connection] = {}
        self._gate = Gate(self.path.parent)
        self._checkpoints = Checkpoints(self.path, self._connected)
        self._looks: Looks[View] = Looks(self._connected, View, partial(self._in, "read"))
        self._images = {name: _Images() for name in self._threads}
        self._work = asyncio.Event()
        self._boot_id = boot_id()

    # -- connections -------------------------------------------------------------------------------------------

    async def _in(self, thread: str, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with _told(self.path):
                db = self._connection(thread)
                written = db.total_changes
                answer = work(db)
                if db.total_changes != written:
                    self._checkpoints.committed(db, self._gate, in_line=thread == "write")
                return answer

        return await asyncio.get_running_loop().run_in_executor(self._threads[thread], run)

    def _connection(self, thread: str) -> sqlite3.Connection:
        """This thread's own connection."""
        db = self._connections.get(thread)
        if db is None:
            db = self._connections[thread] = self._connected()
            if thread != "read":
                db.execute("PRAGMA busy_timeout = 0")  # the gate waits
        return db

    def _connected(self) -> sqlite3.Connection:
        with _told(self.path):
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=256)
            db.execute(f"PRAGMA busy_timeout = {int(PATIENCE_SECONDS * 1000)}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # see checkpoints.py
            db.execute("PRAGMA cache_size = -32768")
            return db

    async def open(self) -> None:
        if not self.path.parent.is_dir():
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LedgerError(f"cannot make the directory of the ledger {str(self.path)!r}: {error}") from error
        kind = file_system(self.path.parent)
        if kind in NETWORK_FILE_SYSTEMS:
            raise LedgerError(
                f"the ledger {str(self.path)!r} lies on a network file system ({kind}), where SQLite's locks do not "
                "hold; put it on a local disk, or use PostgreSQL"
            )
        await self._in("write", self._migrate)

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Bring the file up to date, one numbered script at a time, under the write lock."""
        if sqlite3.sqlite_version_info < OLDEST:
            raise LedgerError(about_library())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with snapshot(db):
                    self._examine(db)  # before anything is set: another's database stays as it is
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # another process is opening it at this very moment
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # noqa: TID251 - in the writing thread, before any clock is told
        with _transaction(db, self._gate):
            version = self._examine(db)
            for number, script in enumerate(migrations("sqlite")[version:], version + 1):
                for statement in _statements(script):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            if version == 0:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _examine(self, db: sqlite3.Connection) -> int:
        """The version of this ledger's schema; 0: the file is empty. Another's database is refused."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise LedgerError(f"{str(self.path)!r} is a SQLite database, but not a Quire ledger; choose another file")
        if version > (known := len(migrations("sqlite"))):
            raise LedgerError(
                f"the ledger {str(self.path)!r} was made by a newer Quire (schema {version}, this one knows "
                f"{known}); update Quire to open it"
            )
        return int(version)

    async def close(self) -> None:
        self._work.set()
        self._looks.close()
        for name, thread in self._threads.items():
            connection = self._connections.pop(name, None)
            if connection is not None:
                await asyncio.get_running_loop().run_in_executor(thread, connection.close)
            thread.shutdown(wait=True)
        self._checkpoints.close()
        self._gate.close()

    async def now(self) -> float:
        return self.clock.now()

    # -- writing -----------------------------------------------------------------------------------------------

    async def _decided(self, decide: Callable[[Draft, View], T], thread: str = "write") -> T:
        """One transaction: look, decide, write, commit."""
        return await self._written(lambda db: self._transacted(db, decide, thread), thread)

    async def _written(self, work: Callable[[sqlite3.Connection], tuple[T, bool]], thread: str = "write") -> T:
        answer, woke = await self._in(thread, work)
        if woke:
            self._work.set()
        return answer

    def _transacted(
        self, db: sqlite3.Connection, decide: Callable[[Draft, View], T], thread: str = "write"
    ) -> tuple[T, bool]:
        """What was decided, and whether it made something due."""
        images = self._images[thread]
        with _transaction(db, self._gate, in_line=thread == "write"):
            images.check(db)
            view = View(db, images.kept)
            draft = Draft(view, self.clock.now())
            answer = decide(draft, view)
            write(db, view, draft, self.traits.inline_bytes)
            images.doubtful = True  # until the commit has landed
        images.keep(draft.records.values())
        return answer, draft.woke

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        def decide(draft: Draft, view: View) -> list[Verdict]:
            ids = {change.record_id: None for change in changes}
            for change in changes:
                ids |= dict.fromkeys(child.record_id for child in change.children)
            view.prefetch(ids)
            return verbs.commit(draft, changes)

        return await self._decided(decide)

    async def claim(self, claim: Claim) -> Claimed:
        self._work.clear()

        def decide(draft: Draft, view: View, looks: bool = False) -> Claimed | None:
            """None: there is something to take, and this only looks."""
            if claim.again and (taken_before := claimed_by(claim, view.held_by(claim.worker))):
                return Claimed(tuple(taken_before), draft.now)
            taken: list[Record] = []
            left: list[int] = []
            stay: list[Slot] = []
            next_due: float | None = None
            for slot in claim.slots:
                room = min(claims.allowance(draft, slot), claim.limit - len(taken))
                sql = (
                    f"SELECT {RECORD} FROM records WHERE {_CLAIMABLE} AND workflow = ? AND step = ? "
                    "AND due_at <= ? AND epoch >= ? AND code_version <= ? ORDER BY rank LIMIT ?"
                )
                most = 1 if looks else room + 1
                args = (slot.workflow, slot.step, draft.now, orders.floor(draft, slot.workflow), slot.version, most)
                found = view.db.execute(sql, args).fetchall()
                if looks and found and room > 0:
                    return None
                due = [view.read(row) for row in found]
                taken += claims.take(draft, claim, slot, due[:room])
                left += [record.priority for record in due[room:]]
                stay += [slot] if due[room:] else []
                if len(found) <= room:
                    moment = view.db.execute(
                        f"SELECT due_at FROM records WHERE {_CLAIMABLE} AND workflow = ? AND step = ? "
                        "AND due_at > ? ORDER BY rank LIMIT 1",
                        (slot.workflow, slot.step, draft.now),
                    ).fetchone()
                    if moment is not None and (next_due is None or moment[0] < next_due):
                        next_due = moment[0]
            next_due = claims.next_look(draft, stay, next_due)
            return Claimed(tuple(taken), draft.now, next_due, max(left, default=None), draft.epoch)

        def work(db: sqlite3.Connection) -> tuple[Claimed | None, bool]:
            # Most claims find nothing, and stand in no line for that.
            with snapshot(db):
                view = View(db)
                found = decide(Draft(view, self.clock.now()), view, looks=True)
            return self._transacted(db, decide) if found is None else (found, False)

        return cast(Claimed, await self._written(work))

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return await self._decided(lambda draft, _: verbs.send(draft, sends))

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        def decide(draft: Draft, view: View) -> Beaten | None:
            ends_at = self.clock.boottime() + worker.lease_seconds
            view.db.execute(_PUT_LEASE, (worker.worker_id, self._boot_id, ends_at))
            return verbs.beat(draft, worker, holding, view.held_by(worker.worker_id))

        beaten = await self._decided(decide, "beat")
        if beaten is None:
            raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
        return beaten

    async def farewell(self, worker_id: str) -> None:
        await self._decided(lambda draft, view: verbs.farewell(draft, worker_id, view.held_by(worker_id)))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        needed, alive = await self._in("read", self._needs_recovery)
        if not needed and not dead:
            return Recovered(open=alive)

        def decide(draft: Draft, view: View) -> Recovered:
            db = view.db
            workers = [from_values(Worker, row) for row in db.execute(_OPEN_WORKERS)]
            leases = dict(db.execute("SELECT worker_id, ends_at FROM leases WHERE boot_id = ?", (self._boot_id,)))
            passed = draft.now - self.clock.boottime()  # what the boot's clock says, in the terms of the wall clock
            freed = 0
            for worker in workers:
                if (ends_at := leases.get(worker.worker_id)) is not None:
                    worker = replace(worker, expires_at=ends_at + passed)
                if worker.worker_id in dead or expired(draft, worker):
                    held = view.held_by(worker.worker_id)
                    freed += close(draft, worker, held, dead=worker.worker_id in dead)
            late = f"SELECT {RECORD} FROM records WHERE status = 'RUNNING' AND run_until < ?"
            for row in db.execute(late, (draft.now,)).fetchall():
                record = view.record_of(row)
                freed += overdue(draft, draft.record(record.record_id) or record)
            swept = 0
            for control in view.controls.values():
                scope = "" if control.scope == "*" else "AND workflow = :scope"
                sql = (
                    f"SELECT {RECORD} FROM records WHERE {_OPEN} "
                    f"AND NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0) AND epoch < :floor {scope} LIMIT :limit"
                )
                args = {"floor": control.floor, "scope": control.scope, "limit": limit}
                for row in db.execute(sql, args).fetchall():
                    record = view.record_of(row)
                    swept += sweeps.halted(draft, draft.record(record.record_id) or record)
            swept += self._sweep_abandoned(draft, view, limit)
            alive = tuple(worker for worker in workers if worker.worker_id not in draft.workers)
            return Recovered(len(draft.workers), freed, swept, swept >= limit, alive)

        return await self._decided(decide)

    @staticmethod
    def _sweep_abandoned(draft: Draft, view: View, limit: int) -> int:
        fanins = f'SELECT {rows.columns(Fanin)} FROM fanins WHERE abandoned AND "left" > 0'
        swept = 0
        for row in view.db.execute(fanins).fetchall():
            fanin = rows.fanin_of(row)
            sql = (
                f"SELECT {RECORD} FROM records WHERE parent_id = ? AND generation = ? "
                f"AND step <> '{UNDO}' AND ({_OPEN} AND (open_intents = 0 OR cancel IS NULL) "
                "OR status = 'RUNNING' AND cancel IS NULL) LIMIT ?"
            )
            for found in view.db.execute(sql, (fanin.parent_id, fanin.generation, limit - swept)).fetchall():
                record = view.record_of(found)
                swept += sweeps.abandoned(draft, draft.record(record.record_id) or record, fanin)
            if swept >= limit:
                break
        return swept

    def _needs_recovery(self, db: sqlite3.Connection) -> tuple[bool, tuple[Worker, ...]]:
        """A look without the write lock: is there anything to take over or to sweep?"""
        now = self.clock.now()
        (found,) = db.execute(
            f"""SELECT EXISTS (SELECT 1 FROM workers
                               LEFT JOIN leases ON leases.worker_id = workers.worker_id AND leases.boot_id = :boot
                               WHERE closed IS NULL AND CASE WHEN ends_at IS NULL THEN expires_at - :now
                                   ELSE ends_at - :boottime END + {GRACE} * lease_seconds < 0)
                OR EXISTS (SELECT 1 FROM records WHERE status = 'RUNNING' AND run_until < :now)
                OR EXISTS (SELECT 1 FROM fanins WHERE abandoned AND "left" > 0)
                OR EXISTS (SELECT 1 FROM controls CROSS JOIN records ON scope IN ('*', workflow)
                           WHERE floor > epoch AND {_OPEN}
                             AND NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0))""",
            {"now": now, "boot": self._boot_id, "boottime": self.clock.boottime()},
        ).fetchone()
        return bool(found), tuple(from_values(Worker, row) for row in db.execute(_OPEN_WORKERS))

    async def order(self, order: Order) -> Standing:
        if order.word in ("seal", "unseal"):

            def seal(db: sqlite3.Connection) -> None:
                with _transaction(db, self._gate):
                    (now,) = db.execute("SELECT sealed FROM ledger").fetchone()
                    db.execute("UPDATE ledger SET sealed = ?", (order.seal(now),))

            await self._in("write", seal)
        else:
            await self._decided(lambda draft, _: verbs.order(draft, order))
        return await self.standing()

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read(self, look: Callable[[View], T]) -> T:
        with _told(self.path):
            return await self._looks.ask(look)

    async def standing(self) -> Standing:
        def look(view: View) -> Standing:
            now = self.clock.now()
            sql = f"SELECT {RECEIPT} FROM receipts WHERE stage = 'intended' AND (act_by IS NULL OR act_by > ?)"
            under_way = tuple(view.receipt_of(row) for row in view.db.execute(sql, (now,)))
            return Standing(now, view.epoch, tuple(view.controls.values()), under_way, view.sealed)

        return await self._read(look)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        def look(view: View) -> list[Record]:
            view.prefetch(record_ids)
            found = (view.record(record_id) for record_id in record_ids)
            return [as_seen(record, view.controls.values()) for record in found if record is not None]

        return await self._read(look)

    async def find(self, query: Query) -> list[Record]:
        def look(view: View) -> list[Record]:
            sql, args = query_sql(query, view.controls.values())
            return [as_seen(view.record_of(row), view.controls.values()) for row in view.db.execute(sql, args)]

        return await self._read(look)

    async def counts(self) -> list[Count]:
        def look(view: View) -> list[Count]:
            seen = seen_status(view.controls.values())
            sql = f"SELECT workflow, step, {seen} AS seen, count(*) FROM records GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            return [Count(w, s, Status(status), count) for w, s, status, count in view.db.execute(sql)]

        return await self._looks.ask_aside(look)

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        def look(view: View) -> list[Event]:
            where, args = ("record_id = ? AND", (record_id,)) if record_id else ("", ())
            order = "n" if record_id else "seq"
            sql = f"SELECT {rows.columns(Event)} FROM events WHERE {where} seq > ? ORDER BY {order} LIMIT ?"
            found = view.db.execute(sql, (*args, after, limit))
            return [rows.with_blobs(from_values(Event, row), Event, view.blob) for row in found]

        return await self._read(look)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        def look(view: View) -> dict[str, list[Event]]:
            found: dict[str, list[Event]] = {record_id: [] for record_id in record_ids}
            for start in range(0, len(record_ids), 500):
                part = record_ids[start : start + 500]
                marks = ",".join("?" * len(part))
                sql = f"SELECT {rows.columns(Event)} FROM events WHERE record_id IN ({marks}) ORDER BY record_id, n"
                for row in view.db.execute(sql, part):
                    found[row[1]].append(rows.with_blobs(from_values(Event, row), Event, view.blob))
            return found

        return await self._read(look)

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        def look(view: View) -> list[Receipt]:
            found: list[Receipt] = []
            for column, values in (("record_id", list(record_ids)), ("key", list(keys))):
                for start in range(0, len(values), 500):
                    part = values[start : start + 500]
                    marks = ",".join("?" * len(part))
                    sql = f"SELECT {RECEIPT} FROM receipts WHERE {column} IN ({marks})"
                    found += [view.receipt_of(row) for row in view.db.execute(sql, part)]
            return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

        return await self._read(look)

    async def signals(self, record_id: str) -> list[Signal]:
        return await self._read(lambda view: view.signals_of(record_id))

    async def fanins(self, parent_id: str) -> list[Fanin]:
        return await self._read(lambda view: view.fanins(parent_id))

    async def workers(self) -> list[Worker]:
        sql = f"SELECT {rows.columns(Worker)} FROM workers ORDER BY started_at"
        return await self._read(lambda view: [from_values(Worker, row) for row in view.db.execute(sql)])

    # -- settings and rotation ---------------------------------------------------------------------------------

    async def setting(self, name: str) -> Setting | None:
        def look(view: View) -> Setting | None:
            sql = "SELECT name, value, version FROM settings WHERE name = ?"
            row = view.db.execute(sql, (name,)).fetchone()
            return None if row is None else from_values(Setting, row)

        return await self._read(look)

    async def settings(self, prefix: str) -> list[Setting]:
        sql = "SELECT name, value, version FROM settings WHERE substr(name, 1, ?) = ? ORDER BY name"
        return await self._read(
            lambda view: [from_values(Setting, row) for row in view.db.execute(sql, (len(prefix), prefix))]
        )

    async def keep(self, setting: Setting) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            with _transaction(db, self._gate):
                if setting.version == 0:
                    sql = "INSERT INTO settings VALUES (?, ?, 1) ON CONFLICT DO NOTHING"
                    return db.execute(sql, (setting.name, setting.value)).rowcount == 1
                sql = "UPDATE settings SET value = ?, version = version + 1 WHERE name = ? AND version = ?"
                return db.execute(sql, (setting.value, setting.name, setting.version)).rowcount == 1

        return await self._in("write", work)

    async def forget(self, events: Sequence[Event]) -> int:
        def work(db: sqlite3.Connection) -> int:
            with _transaction(db, self._gate):
                sql = "DELETE FROM events WHERE seq = ? AND hash = ?"
                return db.executemany(sql, [(event.seq, event.hash) for event in events]).rowcount

        return await self._in("write", work)

    async def tidy(self, before: float) -> Tidied:
        def work(db: sqlite3.Connection) -> Tidied:
            blobs = f"FROM blobs WHERE {rows.unnamed_blobs()}"
            # Looked for without the write lock first: mostly there are none.
            some = db.execute(f"SELECT EXISTS (SELECT 1 FROM blobs) AND EXISTS (SELECT 1 {blobs})").fetchone()[0]
            with _transaction(db, self._gate):
                gone = db.execute(f"DELETE {blobs}").rowcount if some else 0
                old = f"SELECT worker_id FROM workers WHERE {rows.OLD_WORKER.format('?')}"
                workers = db.execute(old, (before,)).fetchall()
                for table in ("leases", "workers"):
                    db.executemany(f"DELETE FROM {table} WHERE worker_id = ?", workers)
            return Tidied(gone, len(workers))

        return await self._in("write", work)

    # -- copying -----------------------------------------------------------------------------------------------

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        table, keys = rows.TABLES[type_]
        named = ", ".join(map(rows.quoted, keys))
        where = f"WHERE ({named}) > ({', '.join('?' * len(keys))})" if after else ""
        sql = f"SELECT {rows.columns(type_)} FROM {table} {where} ORDER BY {named} LIMIT ?"

        def look(view: View) -> list[Row]:
            found = view.db.execute(sql, (*after, limit)).fetchall()
            return [rows.with_blobs(rows.row_of(type_, row), type_, view.blob) for row in found]

        return await self._looks.ask_aside(look)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        table, _ = rows.TABLES[type_]
        names = [*field_names(type_), *(["rank"] if type_ is Record else [])]
        marks = ", ".join("?" * len(names))
        sql = f"INSERT OR REPLACE INTO {table} ({', '.join(map(rows.quoted, names))}) VALUES ({marks})"

        def work(db: sqlite3.Connection) -> None:
            with _transaction(db, self._gate):
                if not db.execute("SELECT sealed FROM ledger").fetchone()[0]:
                    raise LedgerError(f"the ledger {str(self.path)!r} is open; rows are copied into a closed one only")
                blobs: dict[str, str] = {}
                put: list[Any] = [rows.shortened(row, type_, self.traits.inline_bytes, blobs) for row in given]
                if type_ is Record:
                    put = [(*field_values(row), row.rank) for row in put]
                else:
                    put = [field_values(row) for row in put]
                db.executemany(sql, put)
                db.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", list(blobs.items()))
                db.execute("UPDATE ledger SET epoch = ?", (epoch,))

        await self._in("write", work)

    # -- waking ------------------------------------------------------------------------------------------------

    async def wait_for_work(self, timeout: float) -> None:
        """Woken at once by this process; a write of another process is noticed within ``GLANCE_SECONDS``."""
        deadline = self.clock.now() + timeout
        while not self._work.is_set() and (left := deadline - self.clock.now()) > 0:
            waiter = asyncio.ensure_future(self._work.wait())
            timer = asyncio.ensure_future(self.clock.sleep(min(left, GLANCE_SECONDS)))
            try:
                await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                timer.cancel()
            # Asked of the connection that writes: what this process commits is no news to it.
            if not self._work.is_set() and await self._in("write", self._images["write"].others_wrote):
                return


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of file system that a folder lies on; empty where the system does not tell."""
    try:
        rows = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return ""
    here = str(folder.resolve())
    fits = [(where, kind) for where, kind in rows if here == where or here.startswith(where.rstrip("/") + "/")]
    return max(fits, key=lambda row: len(row[0]), default=("", ""))[1]


@contextmanager
def _transaction(db: sqlite3.Connection, gate: Gate, *, in_line: bool = True) -> Iterator[None]:
    gate.begin(db, PATIENCE_SECONDS, in_line=in_line)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into what the caller can do about it."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text:
            raise LedgerError(f"{str(path)!r} is not a ledger, nor a SQLite database; choose another file") from error
        if "malformed" in text or "decode" in text:
            raise LedgerError(f"the ledger {str(path)!r} is damaged ({text}); restore a copy") from error
        if "full" in text:
            raise LedgerUnavailable(f"the disk under {str(path)!r} is full; make room, nothing was changed") from error
        if "unable to open" in text or "readonly" in text:
            raise LedgerError(f"the ledger {str(path)!r} cannot be opened for writing: {text}") from error
        if isinstance(error, sqlite3.OperationalError):
            raise LedgerUnavailable(f"the ledger {str(path)!r} did not answer: {text}") from error
        raise LedgerError(f"the ledger {str(path)!r} refuses: {text}") from error
