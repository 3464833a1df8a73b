"""The ledger in PostgreSQL: many machines, one truth.

Every write verb is one transaction of two flushes. The first *locks*, then reads: the control lock (shared; orders take
it exclusively), caps and rates by name, workers, records by id, fan-ins. Only statements after the locks read what the
decision rests on, for a statement sees what was committed before it began, however long it then waits (protocol 4). The
second flush writes the after-images of the ``Draft`` and commits. What a draft asks for and was not read makes the
transaction start again with more to read.

Big batches are written in parts while the rest is still being decided, so that both processors work. Rows of records
that this process holds are not read again: their version and the end of their log say that they are as they were left.

Time is the server's, read after the locks. Beats and reads have connections of their own and never wait for a batch.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, LedgerUnavailable, ValueRefused, WorkerClosed
from quire.ledger import rows
from quire.ledger.base import Ledger, Recovered, Row, Tidied, Traits
from quire.ledger.postgres_guess import OPEN, STANDS, Known
from quire.ledger.postgres_view import (
    CLOCK,
    CONTROL,
    READ_HELD,
    READ_RECORDS,
    RECEIPT,
    RECORD,
    STANDING,
    Missing,
    Reading,
    View,
    Want,
    still_wanted,
    turns_of,
)
from quire.ledger.postgres_wire import Address, Answer, Clash, Lane, Lost, Param, Spoiled, Wire, Wrong, array
from quire.ledger.postgres_write import Restorer, Writer
from quire.ledger.queries import migrations, query_sql, seen_status
from quire.ledger.rules import GRACE, Draft, as_seen, claimed_by, may_claim
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Refused,
    Send,
    Slot,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import PRIORITY_SECONDS, Record, Status
from quire.model.side import Fanin, Setting, Signal, Worker

T = TypeVar("T")

#: A verb that has no answer by then is given up.
PATIENCE_SECONDS = 60.0
#: The server ends a transaction whose process has gone silent (frozen, suspended) and frees what it locked.
SILENCE_SECONDS = 10
#: How often a transaction that met another one is repeated.
MOST_TRIES = 25
#: Other processes are told of new work at most this often.
NOTIFY_SECONDS = 0.05
#: A listener that was lost is made again after this long.
LISTEN_AGAIN_SECONDS = 5.0
#: So many changes are decided, then their rows go to the server while the next are being decided.
STREAM_CHANGES = 100
#: Images kept of records that run here.
MOST_IMAGES = 20_000

_NOW = f"coalesce($1::float8, {CLOCK})"

# -- statements --------------------------------------------------------------------------------------------------

#: The control lock, and word to event readers: this transaction's events come after what is numbered now.
_SHARED = (
    "SELECT pg_advisory_xact_lock_shared($1::bigint), pg_advisory_xact_lock_shared($2::bigint | last_value) "
    "FROM events_seq_seq"
)
_EXCLUSIVE = "SELECT pg_advisory_xact_lock($1::bigint)"
_NAMED = "SELECT pg_advisory_xact_lock(name) FROM unnest($1::bigint[]) AS name"


#: How much later than its due time a record's rank may be: as far as priorities go below zero.
_MARGIN = (
    f"(SELECT coalesce(-min(priority), 0) * {PRIORITY_SECONDS} FROM records WHERE priority < 0 AND queue IS NOT NULL)"
)
_STOPPED = """
    SELECT coalesce(max(floor), 0) AS floor, coalesce(bool_or(halted OR paused), false) AS stopped
    FROM controls WHERE scope IN ('*', slot.workflow)
"""
_IS_DUE = """
    workflow = slot.workflow AND queue = slot.step AND rank <= moment.now + moment.margin
    AND due_at <= moment.now AND epoch >= control.floor
"""
#: Due records, per step at most its room, in order of rank; none that another claim is taking at this moment. The
#: steps are gone through in order, and no more rows are locked than are asked for.
_TAKE = f"""
    SELECT slot.place, {", ".join(f"due.{rows.quoted(name)}" for name in Record._fields)}
    FROM (SELECT {_NOW} AS now, {_MARGIN} AS margin) AS moment
    CROSS JOIN unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS slot (workflow, step, room, place)
    CROSS JOIN LATERAL ({_STOPPED}) AS control
    CROSS JOIN LATERAL (
        SELECT {RECORD} FROM records WHERE {_IS_DUE} AND NOT control.stopped
        ORDER BY rank, record_id LIMIT slot.room FOR UPDATE SKIP LOCKED
    ) AS due
    LIMIT $5
"""
#: May anything be claimed, how urgent is the first of each step that is due, and if none is: when will one be? And why
#: was the worker that asks closed (NULL: it is not known), and is the ledger sealed?
_PEEK = f"""
    SELECT moment.now, bool_or(due.priority IS NOT NULL AND NOT control.stopped), max(due.priority), min(soon.due_at),
        (SELECT coalesce(closed, '') FROM workers WHERE worker_id = $4), (SELECT sealed FROM ledger),
        (SELECT epoch FROM ledger)
    FROM (SELECT {_NOW} AS now, {_MARGIN} AS margin) AS moment
    LEFT JOIN unnest($2::text[], $3::text[]) AS slot (workflow, step) ON true
    LEFT JOIN LATERAL ({_STOPPED}) AS control ON true
    LEFT JOIN LATERAL (SELECT priority FROM records WHERE {_IS_DUE} ORDER BY rank, record_id LIMIT 1) AS due ON true
    LEFT JOIN LATERAL (
        SELECT min(due_at) AS due_at FROM (
            SELECT due_at FROM records
            WHERE due.priority IS NULL AND workflow = slot.workflow AND queue = slot.step AND rank IS NOT NULL
                AND due_at > moment.now
            ORDER BY rank, record_id LIMIT 16
        ) AS first
    ) AS soon ON true
    GROUP BY moment.now
"""
#: Renew a lease unless the worker was closed: one statement, decided under the lock of the worker's row.
_BEAT = f"""
    WITH moment AS (SELECT {_NOW} AS now),
    renewed AS (
        INSERT INTO workers AS known ({rows.columns(Worker)})
        SELECT $2, $3, $4, $5, $6, now, now + $7::float8, $7::float8, NULL, $8 FROM moment, ledger WHERE sealed = ''
        ON CONFLICT (worker_id) DO UPDATE SET
            label = excluded.label, host = excluded.host, boot_id = excluded.boot_id, pid = excluded.pid,
            expires_at = excluded.expires_at, lease_seconds = excluded.lease_seconds, knows = excluded.knows
        WHERE known.closed IS NULL
        RETURNING started_at
    )
    SELECT now, (SELECT started_at FROM renewed),
        (SELECT count(*) FROM records WHERE status = 'RUNNING' AND worker = $2), sealed, {CONTROL}
    FROM moment CROSS JOIN ledger LEFT JOIN controls ON true
"""
_EXPIRED = f"closed IS NULL AND expires_at + {GRACE} * lease_seconds < {{}}"
_OUTDATED = """
    FROM controls JOIN records ON queue IS NOT NULL AND epoch < floor AND (scope = '*' OR workflow = scope)
    WHERE NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0)
"""
_ABANDONED = """
    FROM fanins JOIN records USING (parent_id, generation)
    WHERE abandoned AND "left" > 0 AND (queue IS NOT NULL AND open_intents = 0 OR status = 'RUNNING' AND cancel IS NULL)
"""
#: One look: is there anything to take over or to sweep, and which workers are open?
_NEEDS_RECOVERY = f"""
    SELECT found.needed, {", ".join(f"workers.{name}" for name in Worker._fields)}
    FROM (SELECT {_NOW} AS now) AS moment
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM workers WHERE {_EXPIRED.format("moment.now")})
            OR EXISTS (SELECT 1 FROM records WHERE status = 'RUNNING' AND run_until < moment.now)
            OR EXISTS (SELECT 1 {_OUTDATED}) OR EXISTS (SELECT 1 {_ABANDONED}) AS needed
    ) AS found
    LEFT JOIN workers ON closed IS NULL
    ORDER BY workers.started_at, workers.worker_id
"""
_RECOVERABLE = f"""
    SELECT record_id, parent_id FROM records WHERE status = 'RUNNING' AND worker = ANY($2::text[])
    UNION SELECT record_id, parent_id FROM records WHERE status = 'RUNNING' AND run_until < $1::float8
    UNION (SELECT record_id, parent_id {_OUTDATED} LIMIT $3)
    UNION (SELECT record_id, parent_id {_ABANDONED} LIMIT $3)
"""
#: The lowest number after which a transaction that is still open may put events (see ``events``).
_HORIZON = """
    SELECT min((classid::bigint << 32 | objid::bigint) & 1099511627775) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) & ~1099511627775::bigint = $1::bigint
"""

Decide = Callable[[Draft, View, Writer], T]


class PostgresLedger(Ledger):
    """A ledger in a PostgreSQL database. ``url`` is ``postgresql://…``; ``?schema=NAME`` chooses its schema there."""

    #: The longer the lease, the fewer the beats of an idle worker; a dead one on the same machine is known at once.
    traits = Traits(durable=True, shared=True, remote=True, lease_seconds=60.0, side_by_side=True)

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.url = url
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        self.schema = dict(options).get("schema", "quire")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema) or self.schema.startswith("pg_"):
            raise LedgerError(
                f"{self.schema!r} cannot be the schema of a ledger; take lower-case letters, digits and underscores"
            )
        others = urlencode([(name, value) for name, value in options if name != "schema"])
        self._address = Address(urlunsplit(parts._replace(query=others)))
        self.clock = clock
        #: For tests: awaited between the locks of a verb and its decision, with the verb's name.
        self.barrier: Callable[[str], Awaitable[None]] | None = None
        self._commits = Lane(lambda: self._connected(driven=True), 2)
        self._claims = Lane(lambda: self._connected(driven=True), 1)
        self._beats = Lane(lambda: self._connected(driven=True), 1)
        self._reads = Lane(lambda: self._connected(driven=False), 8)
        self._control_key = self._key("control")
        #: Marks the advisory locks that tell event readers of open transactions; the low 40 bits are a number.
        self._events_key = (self._key("events") & 0x3FFFFF | 0x400000) << 40
        self._channel = f"quire_{self._key('work') & 0xFFFFFFFFFFFF:x}"
        self._images: dict[str, Record] = {}
        self._known: Known | None = None
        #: Workers of this process, as they were at their last beat.
        self._beaten: dict[str, Worker] = {}
        self._offset = 0.0
        self._work = asyncio.Event()
        self._closing = asyncio.Event()
        self._untold = False
        self._teller: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        #: The server's process that told of our own work last: it tells us nothing new.
        self._told_by = 0
        self._more_is_due = False

    def _key(self, *parts: str) -> int:
        """A number for an advisory lock: signed, 64 bits, one for each name in each schema."""
        text = "\0".join((self.schema, *parts)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)

    # -- connections -------------------------------------------------------------------------------------------

    async def _connected(self, *, driven: bool) -> Wire:
        settings = {
            "search_path": f'"{self.schema}"',
            "client_encoding": "UTF8",
            "default_transaction_isolation": "read committed",
            "idle_in_transaction_session_timeout": f"{SILENCE_SECONDS}s",
            "lock_timeout": f"{int(PATIENCE_SECONDS / 2)}s",
            "statement_timeout": f"{int(PATIENCE_SECONDS)}s",
            # Whoever waits for a lock although its process is gone, gives up.
            "client_connection_check_interval": "2s",
            "jit": "off",
        }
        if driven:
            # Every statement of these connections goes by an index. Tables that are new have no statistics yet, and a
            # plan that reads a whole table while it is small would be kept while it grows.
            settings |= {"plan_cache_mode": "force_generic_plan"} | dict.fromkeys(
                ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"
            )
        return await self._address.connect(settings)

    async def open(self) -> None:
        async def migrated(wire: Wire) -> None:
            ((encoding,),) = await wire.ask("SHOW server_encoding")
            if encoding != "UTF8":
                raise LedgerError(
                    f"the database {self._address.shown} keeps texts in {encoding}; a ledger needs one in UTF8"
                )
            wire.send("BEGIN")
            # Two processes may open a new ledger at the same moment: the second finds it made.
            wire.send(_EXCLUSIVE, self._key("migration"))
            wire.send("SELECT count(*) FROM pg_namespace WHERE nspname = $1", self.schema)
            ((exists,),) = (await wire.flush())[-1].rows()
            if not exists:
                await wire.ask(f'CREATE SCHEMA "{self.schema}"')
            await self._migrate(wire)
            wire.send("COMMIT")
            await wire.flush()

        try:
            await self._transacted(self._reads, migrated)
        except BaseException:
            await self._reads.drop()
            raise

    async def _migrate(self, wire: Wire) -> None:
        tables = {
            str(name)
            for (name,) in await wire.ask(
                "SELECT relname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
                "WHERE nspname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'f')",
                self.schema,
            )
        }
        version = 0
        if "ledger" in tables and "records" in tables:
            ((version,),) = await wire.ask("SELECT schema_version FROM ledger")
        elif tables:
            raise LedgerError(
                f"the schema {self.schema!r} of {self._address.shown} has tables, but is not a Quire ledger; "
                "choose another (?schema=NAME)"
            )
        scripts = migrations("postgres")
        if version > len(scripts):
            raise LedgerError(
                f"the ledger {self._address.shown} (schema {self.schema!r}) was made by a newer Quire "
                f"(schema {version}, this one knows {len(scripts)}); update Quire to open it"
            )
        for number, script in enumerate(scripts[version:], version + 1):
            for statement in _statements(script):
                await wire.ask(statement)
            await wire.ask("UPDATE ledger SET schema_version = $1", number)

    async def close(self) -> None:
        self._closing.set()
        self._work.set()
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener
        if self._teller is not None:
            await self._teller
        for lane in (self._commits, self._claims, self._beats, self._reads):
            await lane.close()

    async def now(self) -> float:
        if self.clock is not None:
            return self.clock.now()
        ((now,),) = await self._asked(f"SELECT {CLOCK}")
        return float(now)

    @property
    def _told(self) -> float | None:
        return None if self.clock is None else self.clock.now()

    # -- transactions ------------------------------------------------------------------------------------------

    async def _transacted(self, lane: Lane, body: Callable[[Wire], Awaitable[T]], *, most: int = MOST_TRIES) -> T:
        """Run the body on a connection; again, if another transaction was in the way or the connection was stale."""
        for tries in range(1, MOST_TRIES + 1):
            try:
                async with lane.wire() as wire, asyncio.timeout(PATIENCE_SECONDS):
                    try:
                        return await body(wire)
                    except asyncio.CancelledError:
                        raise  # it may be in the middle of a flush: the lane closes the connection
                    except BaseException:
                        await wire.rollback()
                        raise
            except TimeoutError:
                raise LedgerUnavailable(
                    f"the PostgreSQL server at {self._address.shown} did not answer for {PATIENCE_SECONDS:.0f} seconds"
                ) from None
            except Lost as error:
                # A connection may have died while nobody used it. Nothing can have landed before a COMMIT was sent.
                if error.landed or tries > 3:
                    raise LedgerUnavailable(
                        f"the connection to the PostgreSQL server at {self._address.shown} was lost: {error}"
                    ) from error
            except Clash as error:
                if most == 1:
                    raise
                if tries == MOST_TRIES and error.exists:
                    raise Spoiled(str(error)) from error
                if tries == MOST_TRIES:
                    raise LedgerUnavailable(
                        f"other transactions stood in the way {tries} times at {self._address.shown}: {error}"
                    ) from error
        raise AssertionError("unreachable")

    async def _decided(
        self, verb: str, want: Want, decide: Decide[T], *, lane: Lane | None = None, changes: Sequence[Change] = ()
    ) -> T:
        """One transaction: lock, look, decide, write, commit."""

        async def body(wire: Wire) -> T:
            view = await self._locked(wire, want, changes)
            answer, _ = await self._written(wire, verb, view, decide)
            return answer

        return await self._complete(lane or self._commits, body, want, changes)

    async def _complete(
        self, lane: Lane, body: Callable[[Wire], Awaitable[T]], want: Want, changes: Sequence[Change] = ()
    ) -> T:
        """Run the body until nothing is missing: from its start, so that all is locked in its place in the order."""
        while True:
            try:
                return await self._transacted(lane, body)
            except Missing as missing:
                if not want.missed(missing):
                    raise LedgerError(f"the ledger does not find what a rule asks for: {missing}") from missing
                want.everything_of(changes)

    async def _written(self, wire: Wire, verb: str, view: View, decide: Decide[T]) -> tuple[T, list[Answer]]:
        """Decide, write and commit; answers the decision, and what the server said."""
        if self.barrier is not None:
            await self.barrier(verb)
        draft = Draft(view, view.now)
        writer = Writer(wire, view, draft, self.traits.inline_bytes)
        answer = decide(draft, view, writer)
        writer.finish()
        wire.send("COMMIT")
        answers = await wire.flush()
        self._remember(draft.records.values())
        if draft.woke:
            self._woke()
        return answer, answers

    def _remember(self, changed: Iterable[Record]) -> None:
        """Keep the images of records that run: whoever holds them here will change them next."""
        for record in changed:
            if record.status is Status.RUNNING:
                self._images[record.record_id] = record
            else:
                self._images.pop(record.record_id, None)
        while len(self._images) > MOST_IMAGES:
            del self._images[next(iter(self._images))]

    # -- locking and reading -----------------------------------------------------------------------------------

    def _begin(self, wire: Wire, want: Want) -> None:
        """The first locks, in the order that all verbs keep."""
        wire.send("BEGIN")
        wire.send(_SHARED, self._control_key, self._events_key)
        names = {self._key("cap", workflow, step or "*") for workflow, step in want.caps}
        names |= {self._key("rate", name) for name in want.buckets}
        if names:
            wire.send(_NAMED, array("bigint", sorted(names)))
        self._quieten(wire, want.quiet)

    def _quieten(self, wire: Wire, worker_ids: Iterable[str]) -> None:
        """Nothing is claimed for these workers until the transaction ends."""
        if keys := sorted(self._key("worker", worker_id) for worker_id in worker_ids):
            wire.send(_NAMED, array("bigint", keys))

    async def _locked(self, wire: Wire, want: Want, changes: Sequence[Change] = ()) -> View:
        """Take the locks and read what was wanted, after them."""
        view = View()
        self._begin(wire, want)
        await self._read_into(view, wire, want)
        more = still_wanted(view, changes)
        if more != Want():
            await self._read_into(view, wire, more)
        return view

    async def _read_into(self, view: View, wire: Wire, want: Want) -> list[Answer]:
        """Lock and read in one flush, together with what was sent before; answers what the server said."""
        reading = Reading(view, wire)
        reading.want(want, self._images)
        standing = wire.send(STANDING)
        answers = await reading.done()
        view.take_standing(answers[standing], self._told)
        self._known = Known(view.epoch, view.sealed, view.controls, view.signature)
        self._heard(view.now)
        return answers

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        if not changes:
            return []

        def decide(draft: Draft, _view: View, writer: Writer) -> list[Verdict]:
            verdicts = []
            for number, change in enumerate(changes, 1):
                verdicts.append(draft.change(change))
                if number % STREAM_CHANGES == 0 and number < len(changes):
                    writer.push()
            return verdicts

        try:
            if (verdicts := await self._guessed(changes)) is not None:
                return verdicts
            want = Want()
            for change in changes:
                want.of_change(change)
            return await self._decided("commit", want, decide, changes=changes)
        except (ValueRefused, ValueError) as error:
            return await self._parted(changes, self.commit, error)

    async def _guessed(self, changes: Sequence[Change]) -> list[Verdict] | None:
        """Commit by one flush what needs no look (see ``postgres_guess``); None: nothing was written."""
        known = self._known
        if known is None or self.barrier is not None:
            return None
        now = SYSTEM.boottime() + self._offset if self.clock is None else self.clock.now()
        view = known.view(changes, self._images, self._beaten, now)
        if view is None:
            return None

        async def body(wire: Wire) -> list[Verdict]:
            draft = Draft(view, view.now)
            writer = Writer(wire, view, draft, self.traits.inline_bytes, guess=True)
            self._begin(wire, Want(quiet=set(view.workers)))
            if view.workers:
                wire.send(OPEN, array("text", sorted(view.workers)))
            stands = wire.send(STANDS, known.signature)
            verdicts: list[Verdict] = []
            for number, change in enumerate(changes, 1):
                verdict = draft.change(change)
                if type(verdict) is not Applied or verdict.again:
                    raise Wrong
                verdicts.append(verdict)
                if number % STREAM_CHANGES == 0 and number < len(changes):
                    writer.push()
            writer.finish()
            wire.send("COMMIT")
            self._heard((await wire.flush())[stands].rows()[0][1])
            self._remember(draft.records.values())
            if draft.woke:
                self._woke()
            return verdicts

        try:
            return await self._transacted(self._commits, body, most=1)
        except (Wrong, Missing, Clash):
            for change in changes:
                self._images.pop(change.record_id, None)
            return None

    def _heard(self, now: float) -> None:
        """The server's clock, as seen from here. Its word has travelled, so the largest difference is the truest."""
        offset = now - SYSTEM.boottime()
        if offset > self._offset or offset < self._offset - 1.0:
            self._offset = offset

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        if not sends:
            return []
        want = Want(records={sent.record_id for sent in sends}, signals={sent.signal_id for sent in sends})
        try:
            return await self._decided("send", want, lambda draft, *_: [draft.send(sent) for sent in sends])
        except (ValueRefused, ValueError) as error:
            return await self._parted(sends, self.send, error)

    @staticmethod
    async def _parted(
        batch: Sequence[T], verb: Callable[[Sequence[T]], Awaitable[list[Verdict]]], error: Exception
    ) -> list[Verdict]:
        """A value spoils the batch: halves of it are sent, until the one that holds it stands alone (protocol 14)."""
        if len(batch) == 1:
            return [Refused("value", f"the ledger cannot keep a value of it: {error}")]
        middle = len(batch) // 2
        return await verb(batch[:middle]) + await verb(batch[middle:])

    # -- claims ------------------------------------------------------------------------------------------------

    async def claim(self, claim: Claim) -> Claimed:
        self._work.clear()
        if not claim.again and not self._more_is_due:
            look = await self._asked(_PEEK, self._told, *_named(claim.slots), claim.worker, lane=self._claims)
            ((now, claimable, priority, next_due, closed, sealed, epoch),) = look
            if not sealed:
                may_claim(claim, known=closed is not None, closed=closed or None)
            if not claimable and not sealed:
                return Claimed((), now, next_due, priority, epoch)
        claimed = await self._transacted(self._claims, lambda wire: self._claimed(wire, claim))
        self._more_is_due = bool(claimed.records)
        return claimed

    async def _claimed(self, wire: Wire, claim: Claim) -> Claimed:
        # No other claim of this worker runs meanwhile, such as a first try whose answer was lost, and nobody closes it.
        want = Want(quiet={claim.worker}, held={claim.worker} if claim.again else set())
        for slot in claim.slots:
            want.of_slot(slot)
        view = View()
        self._begin(wire, want)
        limited = bool(want.caps or want.buckets)
        if limited or claim.again:
            await self._read_into(view, wire, want)
            if taken_before := claimed_by(claim, view.held):
                return Claimed(tuple(taken_before), view.now)
            sketch = Draft(view, view.now)
            place = self._take(wire, claim, [sketch.allowance(slot) for slot in claim.slots])
            answers = await wire.flush()
        else:
            place = self._take(wire, claim, [slot.free for slot in claim.slots])
            answers = await self._read_into(view, wire, want)
        reading = Reading(view, wire)
        due = reading.take_due(answers[place])
        await reading.put_blobs()
        peek = -1

        def decide(draft: Draft, view: View, writer: Writer) -> list[Record]:
            nonlocal peek
            taken: list[Record] = []
            for number, slot in enumerate(claim.slots, 1):
                room = min(draft.allowance(slot), claim.limit - len(taken))
                found = [view.records[record_id] for record_id in due.get(number, [])[:room]]
                taken += draft.claim(claim, slot, [row for row in found if row is not None])
            writer.push()
            peek = wire.send(_PEEK, self._told, *_named(claim.slots), claim.worker)
            return taken

        taken, answers = await self._written(wire, "claim", view, decide)
        ((_, _, priority, next_due, _, _, epoch),) = answers[peek].rows()
        return Claimed(tuple(taken), view.now, next_due, priority, epoch)

    def _take(self, wire: Wire, claim: Claim, room: list[int]) -> int:
        return wire.send(_TAKE, self._told, *_named(claim.slots), array("bigint", room), claim.limit)

    # -- workers -----------------------------------------------------------------------------------------------

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        """One statement for a worker that holds nothing, two for one that does; none waits for a batch."""

        async def body(wire: Wire) -> Beaten | None:
            view = View()
            wire.send(
                _BEAT,
                self._told,
                worker.worker_id,
                worker.label,
                worker.host,
                worker.boot_id,
                worker.pid,
                worker.lease_seconds,
                worker.knows,
            )
            reading = Reading(view, wire)
            held = bool(holding.versions)
            if held:
                reading.ask(READ_HELD, [worker.worker_id], reading.take_held)
            found = (await reading.done())[0].rows()
            view.now, started_at, count, view.sealed = found[0][:4]
            if started_at is None and not view.sealed:
                raise _closed(worker.worker_id)
            if count and not held:
                reading.ask(READ_HELD, [worker.worker_id], reading.take_held)
                await reading.done()
            view.controls = {row[4]: rows.control_of(row[4:]) for row in found if row[4] is not None}
            view.workers[worker.worker_id] = worker._replace(started_at=started_at, closed=None)
            draft = Draft(view, view.now)
            try:
                beaten = draft.beat(worker, holding, view.held)
            except Missing:  # what is given back touches more than was read: that is decided under the locks
                return None
            return None if draft.records else beaten

        self._beaten.pop(worker.worker_id, None)
        beaten = await self._transacted(self._beats, body) or await self._reconciled(worker, holding)
        self._beaten[worker.worker_id] = worker
        return beaten

    async def _reconciled(self, worker: Worker, holding: Holding) -> Beaten:
        """The ledger gives the worker records that it does not know of: under their locks they are taken back."""
        want = Want(workers={worker.worker_id}, held={worker.worker_id})
        beaten = await self._decided(
            "beat", want, lambda draft, view, _: draft.beat(worker, holding, view.held), lane=self._beats
        )
        if beaten is None:
            raise _closed(worker.worker_id)
        return beaten

    async def farewell(self, worker_id: str) -> None:
        self._beaten.pop(worker_id, None)
        want = Want(quiet={worker_id}, workers={worker_id}, held={worker_id})
        await self._decided("farewell", want, lambda draft, view, _: draft.farewell(worker_id, view.held))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        found = await self._asked(_NEEDS_RECOVERY, self._told, lane=self._claims)
        if not found[0][0] and not dead:
            return Recovered(open=tuple(Worker._make(row[1:]) for row in found if row[1] is not None))
        more = Want()
        return await self._complete(self._claims, lambda wire: self._recovered(wire, limit, dead, more), more)

    async def _recovered(self, wire: Wire, limit: int, dead: Sequence[str], more: Want) -> Recovered:
        view = View()
        self._begin(wire, Want())
        await self._read_into(view, wire, Want())
        over = {
            str(row[0])
            for row in await wire.ask(f"SELECT worker_id FROM workers WHERE {_EXPIRED.format('$1')}", view.now)
        }
        over |= set(dead)
        # The workers first: after this none of them claims or beats, and whoever has beaten meanwhile is not expired.
        self._quieten(wire, over)
        await self._read_into(view, wire, Want(workers=over))
        want = Want()
        for record_id, parent_id in await wire.ask(_RECOVERABLE, view.now, array("text", sorted(over)), limit):
            want.records.add(record_id)
            if parent_id is not None:
                want.records.add(parent_id)
        candidates = sorted(want.records)
        want.fanins = want.intents = set(candidates)
        want.records |= more.records
        await self._read_into(view, wire, want)
        if turns := turns_of(view, dict.fromkeys(want.fanins, limit)):
            await self._read_into(view, wire, Want(records=turns))
        alive = wire.send(
            f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL ORDER BY started_at, worker_id"
        )
        workers = [Worker._make(row) for row in (await wire.flush())[alive].rows()]

        def decide(draft: Draft, view: View, _writer: Writer) -> Recovered:
            found = [row for record_id in candidates if (row := view.records[record_id]) is not None]
            freed = swept = 0
            for worker_id in sorted(over):
                if (worker := view.workers[worker_id]) is not None:
                    held = [row for row in found if row.status is Status.RUNNING and row.worker == worker_id]
                    freed += draft.close(worker, held, dead=worker_id in dead)
            for row in found:
                freed += draft.overdue(draft.record(row.record_id) or row)
                swept += draft.sweep_halted(draft.record(row.record_id) or row)
            for row in found:
                if row.parent_id is not None and row.generation is not None:
                    fanin = draft.fanin(row.parent_id, row.generation)
                    if fanin is not None:
                        swept += draft.sweep_abandoned(draft.record(row.record_id) or row, fanin)
            left = tuple(worker for worker in workers if worker.worker_id not in draft.workers)
            return Recovered(len(draft.workers), freed, swept, swept >= limit, left)

        recovered, _ = await self._written(wire, "recover", view, decide)
        return recovered

    # -- orders ------------------------------------------------------------------------------------------------

    async def order(self, order: Order) -> Standing:
        async def body(wire: Wire) -> None:
            wire.send("BEGIN")
            # Alone: every transaction that began before has ended, and the next will see the order.
            wire.send(_EXCLUSIVE, self._control_key)
            view = View()
            await self._read_into(view, wire, Want())

            def decide(draft: Draft, _view: View, _writer: Writer) -> None:
                if order.word in ("seal", "unseal"):
                    target = (order.target or "elsewhere") if order.word == "seal" else ""
                    wire.send("UPDATE ledger SET sealed = $1", target)
                else:
                    draft.order(order)

            await self._written(wire, "order", view, decide)

        await self._transacted(self._claims, body)
        return await self.standing()

    # -- reading -----------------------------------------------------------------------------------------------

    async def _asked(self, sql: str, *params: Param, lane: Lane | None = None) -> list[tuple[Any, ...]]:
        """One statement by itself."""
        return await self._transacted(lane or self._reads, lambda wire: wire.ask(sql, *params))

    async def _read(self, look: Callable[[Reading], Awaitable[T]]) -> T:
        """Look at the ledger with the controls at hand."""

        async def body(wire: Wire) -> T:
            view = View()
            wire.send(STANDING)
            view.take_standing((await wire.flush())[0], self._told)
            return await look(Reading(view, wire))

        return await self._transacted(self._reads, body)

    async def standing(self) -> Standing:
        async def look(reading: Reading) -> Standing:
            view = reading.view
            sql = f"SELECT {RECEIPT} FROM receipts WHERE stage = 'intended' AND (act_by IS NULL OR act_by > $1)"
            under_way = await reading.all(Receipt, rows.receipt_of, sql, view.now)
            return Standing(view.now, view.epoch, tuple(view.controls.values()), tuple(under_way), view.sealed)

        return await self._read(look)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        async def look(reading: Reading) -> list[Record]:
            found = await reading.all(Record, rows.record_of, READ_RECORDS, array("text", sorted(set(record_ids))))
            known = {row.record_id: as_seen(row, reading.view.controls.values()) for row in found}
            return [known[record_id] for record_id in record_ids if record_id in known]

        return await self._read(look)

    async def find(self, query: Query) -> list[Record]:
        async def look(reading: Reading) -> list[Record]:
            controls = reading.view.controls.values()
            sql, args = query_sql(query, controls, "\0")
            first, *rest = sql.split("\0")
            sql = first + "".join(f"${place}{part}" for place, part in enumerate(rest, 1))
            return [as_seen(row, controls) for row in await reading.all(Record, rows.record_of, sql, *args)]

        return await self._read(look)

    async def counts(self) -> list[Count]:
        async def look(reading: Reading) -> list[Count]:
            seen = seen_status(reading.view.controls.values())
            sql = f"SELECT workflow, step, {seen} AS seen, count(*) FROM records GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            return [Count(w, s, Status(status), count) for w, s, status, count in await reading.wire.ask(sql)]

        return await self._read(look)

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        """One record's log, or the ledger's after a ``seq``.

        Numbers are drawn while a transaction is open, and a later number may be committed first. So each transaction
        holds, from before it draws its first number until its end, a shared advisory lock that names the last number
        drawn before. A reader takes the last number drawn, then looks at these locks, then reads up to the smallest of
        these numbers: three statements, each sees at least what the one before it saw. A transaction that the look at
        the locks missed either drew its numbers after the reader's first statement or had ended before its last. So no
        line is ever skipped, and no foreign transaction, however long, holds readers up (as ``xmin`` would).
        """

        async def body(wire: Wire) -> list[Event]:
            reading = Reading(View(), wire)
            select = f"SELECT {rows.columns(Event)} FROM events"
            if record_id:
                sql = f"{select} WHERE record_id = $1 AND seq > $2 ORDER BY n LIMIT $3"
                return await reading.all(Event, Event._make, sql, record_id, after, limit)
            if not await wire.ask("SELECT 1 FROM events WHERE seq > $1 LIMIT 1", after):
                return []
            wire.send("SELECT last_value FROM events_seq_seq")
            wire.send(_HORIZON, self._events_key)
            drawn, fixed = (answer.rows()[0][0] for answer in await wire.flush())
            horizon = drawn if fixed is None else min(drawn, fixed)
            sql = f"{select} WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3"
            return await reading.all(Event, Event._make, sql, after, horizon, limit)

        return await self._transacted(self._reads, body)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        async def body(wire: Wire) -> dict[str, list[Event]]:
            sql = f"SELECT {rows.columns(Event)} FROM events WHERE record_id = ANY($1) ORDER BY record_id, n"
            found: dict[str, list[Event]] = {record_id: [] for record_id in record_ids}
            for event in await Reading(View(), wire).all(Event, Event._make, sql, array("text", record_ids)):
                found[event.record_id].append(event)
            return found

        return await self._transacted(self._reads, body)

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        async def body(wire: Wire) -> list[Receipt]:
            reading = Reading(View(), wire)
            found: list[Receipt] = []
            for column, values in (("record_id", record_ids), ("key", keys)):
                if values:
                    sql = f"SELECT {RECEIPT} FROM receipts WHERE {column} = ANY($1::text[])"
                    found += await reading.all(Receipt, rows.receipt_of, sql, array("text", list(values)))
            return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

        return await self._transacted(self._reads, body)

    async def signals(self, record_id: str) -> list[Signal]:
        sql = f"SELECT {rows.columns(Signal)} FROM signals WHERE record_id = $1 ORDER BY seq"
        return await self._transacted(
            self._reads, lambda wire: Reading(View(), wire).all(Signal, Signal._make, sql, record_id)
        )

    async def fanins(self, parent_id: str) -> list[Fanin]:
        sql = f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = $1 ORDER BY generation"
        return [rows.fanin_of(row) for row in await self._asked(sql, parent_id)]

    async def workers(self) -> list[Worker]:
        found = await self._asked(f"SELECT {rows.columns(Worker)} FROM workers ORDER BY started_at, worker_id")
        return [Worker._make(row) for row in found]

    async def settings_warnings(self) -> list[str]:
        """What the server's settings take away from the promise that an acknowledged commit is kept."""
        names = ("fsync", "synchronous_commit", "full_page_writes")
        ((fsync, commits, pages),) = await self._asked(
            f"SELECT {', '.join(f'current_setting({chr(39)}{name}{chr(39)})' for name in names)}"
        )
        warnings = []
        if fsync == "off":
            warnings.append("fsync is off: a crash of the machine may lose commits or the whole database; turn it on")
        if commits == "off":
            warnings.append(
                "synchronous_commit is off: a crash may lose commits that were acknowledged; "
                f"ALTER DATABASE {self._address.database} SET synchronous_commit = on"
            )
        if pages == "off":
            warnings.append("full_page_writes is off: a crash in the middle of a write may damage pages; turn it on")
        return warnings

    # -- settings and rotation ---------------------------------------------------------------------------------

    async def setting(self, name: str) -> Setting | None:
        found = await self._asked("SELECT name, value, version FROM settings WHERE name = $1", name)
        return Setting._make(found[0]) if found else None

    async def settings(self, prefix: str) -> list[Setting]:
        sql = "SELECT name, value, version FROM settings WHERE starts_with(name, $1) ORDER BY name"
        return [Setting._make(row) for row in await self._asked(sql, prefix)]

    async def keep(self, setting: Setting) -> bool:
        if setting.version == 0:
            sql = "INSERT INTO settings VALUES ($1, $2, 1 + $3::bigint) ON CONFLICT DO NOTHING RETURNING 1"
        else:
            sql = "UPDATE settings SET value = $2, version = version + 1 WHERE name = $1 AND version = $3 RETURNING 1"
        return bool(await self._changed(sql, setting.name, setting.value, setting.version))

    async def forget(self, events: Sequence[Event]) -> int:
        sql = (
            "DELETE FROM events USING unnest($1::bigint[], $2::text[]) AS gone (seq, hash) "
            "WHERE events.seq = gone.seq AND events.hash = gone.hash"
        )
        seqs, hashes = [event.seq for event in events], [event.hash for event in events]
        return await self._changed(sql, array("bigint", seqs), array("text", hashes))

    async def _changed(self, sql: str, *params: Param) -> int:
        """One small transaction; answers how many rows were changed."""

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            place = wire.send(sql, *params)
            wire.send("COMMIT")
            return (await wire.flush())[place].count

        return await self._transacted(self._claims, body)

    async def tidy(self, before: float) -> Tidied:
        blobs = f"FROM blobs WHERE {rows.unnamed_blobs()}"

        async def body(wire: Wire) -> Tidied:
            # Looked for without the lock first: mostly there are none.
            ((some,),) = await wire.ask(f"SELECT EXISTS (SELECT 1 FROM blobs) AND EXISTS (SELECT 1 {blobs})")
            wire.send("BEGIN")
            # Alone: nobody names a blob, or intends an act, while it is decided that nothing does.
            wire.send(_EXCLUSIVE, self._control_key)
            gone = wire.send(f"DELETE {blobs}") if some else None
            workers = wire.send(f"DELETE FROM workers WHERE {rows.OLD_WORKER.format('$1::float8')}", before)
            wire.send("COMMIT")
            answers = await wire.flush()
            return Tidied(answers[gone].count if gone is not None else 0, answers[workers].count)

        return await self._transacted(self._reads, body)

    # -- copying -----------------------------------------------------------------------------------------------

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        table, keys = rows.TABLES[type_]
        named = ", ".join(map(rows.quoted, keys))
        marks = ", ".join(f"${place}" for place in range(2, 2 + len(keys)))
        where = f"WHERE ({named}) > ({marks})" if after else ""
        sql = f"SELECT {rows.columns(type_)} FROM {table} {where} ORDER BY {named} LIMIT $1"

        def make(values: Sequence[Any]) -> Row:
            row: Row = rows.row_of(type_, values)
            return row

        return await self._transacted(
            self._reads, lambda wire: Reading(View(), wire).all(type_, make, sql, limit, *after)
        )

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        async def body(wire: Wire) -> None:
            wire.send("BEGIN")
            wire.send(_EXCLUSIVE, self._control_key)
            view = View()
            await self._read_into(view, wire, Want())
            if not view.sealed:
                raise LedgerError(f"the ledger {self._address.shown} is open; rows are copied into a closed one only")
            Restorer(wire, self.traits.inline_bytes).put(type_, given)
            wire.send("UPDATE ledger SET epoch = $1::bigint", epoch)
            wire.send("COMMIT")
            await wire.flush()

        await self._transacted(self._claims, body)

    # -- waking ------------------------------------------------------------------------------------------------

    def _woke(self) -> None:
        """Something may be due: this process knows at once, the others are told soon."""
        self._work.set()
        self._untold = True
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """After the commit, on another connection, and not more often than is useful: NOTIFY makes commits wait for
        each other, so none carries one (protocol 23). A hint only: the poll is the guarantee."""
        while self._untold:
            self._untold = False
            with suppress(LedgerError):
                await self._transacted(self._reads, self._notified)
            closing = asyncio.ensure_future(self._closing.wait())
            pause = asyncio.ensure_future(SYSTEM.sleep(NOTIFY_SECONDS))
            await _first_of(closing, pause)

    async def _notified(self, wire: Wire) -> None:
        self._told_by = wire.pid
        await wire.ask("SELECT pg_notify($1, '')", self._channel)

    async def _listen(self) -> None:
        """Be told by other processes, for as long as the ledger is open."""
        while True:
            with suppress(LedgerError, Lost, Clash):
                wire = await self._connected(driven=False)
                try:
                    await wire.ask(f"LISTEN {self._channel}")
                    self._work.set()  # what was said before it listened is not heard
                    while True:
                        if set(await wire.notified()) - {self._told_by}:
                            self._work.set()
                finally:
                    await wire.close()
            await SYSTEM.sleep(LISTEN_AGAIN_SECONDS)

    async def wait_for_work(self, timeout: float) -> None:
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        if self._work.is_set():
            return
        work = asyncio.ensure_future(self._work.wait())
        timer = asyncio.ensure_future((self.clock or SYSTEM).sleep(timeout))
        await _first_of(work, timer)


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()


def _closed(worker_id: str) -> WorkerClosed:
    return WorkerClosed(f"worker {worker_id} was closed: its lease ran out")


def _named(slots: Sequence[Slot]) -> tuple[bytes, bytes]:
    return array("text", [slot.workflow for slot in slots]), array("text", [slot.step for slot in slots])


def _statements(script: str) -> Iterator[str]:
    """The statements of a migration: each ends with a semicolon at the end of a line."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    for statement in re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE):
        if statement.strip():
            yield statement
