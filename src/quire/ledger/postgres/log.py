"""The log: reading it in the order of commits while others write it, and forgetting lines that are archived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.ledger import columns as rows
from quire.ledger.postgres.pages import EMPTY, FORGET, LINES, NEWER, ROOM, log_of
from quire.ledger.postgres.reading import Reading
from quire.ledger.postgres.reads import Reads
from quire.ledger.postgres.server import NUMBER_BITS, Server
from quire.ledger.postgres.view import View
from quire.ledger.postgres.wire import Wire, array
from quire.model.event import Event

#: The numbers after which transactions that are still open may put events (see ``events``). One statement reads all the
#: locks, because the server shows all advisory locks as they are at one moment.
_HORIZON = f"""
    SELECT DISTINCT word FROM (
        SELECT min(key & {NUMBER_BITS}) FILTER (WHERE key & ~{NUMBER_BITS}::bigint = $1::bigint) AS word
        FROM (
            SELECT pid, classid::bigint << 32 | objid::bigint AS key FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        ) AS held
        GROUP BY pid HAVING bool_or(key = $2::bigint)
    ) AS open WHERE word IS NOT NULL
"""
_ONE_LOG = log_of("SELECT $1::text AS record_id", as_long_as=f"older.seq > $2::bigint - {ROOM}")
_MANY_LOGS = log_of("SELECT DISTINCT unnest($1::text[]) AS record_id", many=True)


class Log:
    """The lines of all records. They are rows of ``events``, or stand in pages of lines."""

    def __init__(self, server: Server, reads: Reads) -> None:
        self._server = server
        self._reads = reads

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        """Return one record's log, or the ledger's after a ``seq``.

        Numbers are drawn while a transaction is open, and a later number may be committed first. So each transaction
        holds, from before it draws its first number until its end, a shared advisory lock that names the last number
        drawn before. A reader takes the last number drawn, then reads these locks, then reads the log up to the
        smallest of these numbers: three statements, each of which sees at least what the one before it saw. If the
        reader missed a transaction's lock, then the transaction either drew its numbers after the reader's first
        statement or had ended before its last. So no line is ever skipped, and no foreign
        transaction, however long, holds readers up (as ``xmin`` would).

        When a transaction ends, its rows are seen by all first. Then it gives its locks back, one after the other. An
        order that waited for its control lock may be acknowledged while the other lock is still there. So a lock counts
        only together with the control lock, which is taken before it: without that one, its transaction has ended.
        """

        if record_id:
            sql = f"{_ONE_LOG} SELECT * FROM log WHERE seq > $2 ORDER BY n LIMIT $3"
            return (await self._reads.rows(Event, sql, record_id, after, limit))[1]

        async def body(wire: Wire) -> list[Event]:
            reading = Reading(View(), wire)
            if not await wire.ask(NEWER, after):
                return []
            wire.send("SELECT last_value FROM events_seq_seq")
            wire.send(_HORIZON, self._server.events_key, self._server.control_key)
            last, words = (answer.rows() for answer in await wire.flush())
            horizon = _horizon(last[0][0], [word for (word,) in words])
            return await reading.all(Event, rows.event_of, LINES, after, horizon, limit)

        return await self._server.transacted(self._server.long_reads, body)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        async def body(wire: Wire) -> dict[str, list[Event]]:
            sql = f"{_MANY_LOGS} SELECT * FROM log ORDER BY record_id, n"
            found: dict[str, list[Event]] = {record_id: [] for record_id in record_ids}
            for event in await Reading(View(), wire).all(Event, rows.event_of, sql, array("text", record_ids)):
                found[event.record_id].append(event)
            return found

        return await self._server.transacted(self._server.long_reads, body)

    async def forget(self, events: Sequence[Event]) -> int:
        if not events:
            return 0
        sql = (
            "DELETE FROM events USING unnest($1::bigint[], $2::text[]) AS gone (seq, hash) "
            "WHERE events.seq = gone.seq AND events.hash = gone.hash"
        )
        seqs, hashes = [event.seq for event in events], [event.hash for event in events]
        given = array("bigint", seqs), array("text", hashes)

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            gone = wire.send(sql, *given)
            marked = wire.send(FORGET, *given)
            answers = await wire.flush()
            forgotten: int = answers[gone].count + sum(count for (count,) in answers[marked].rows())
            empty = bool(answers[marked].rows())
            while empty:
                place = wire.send(EMPTY, min(seqs), max(seqs))
                empty = bool((await wire.flush())[place].count)
            wire.send("COMMIT")
            await wire.flush()
            return forgotten

        return await self._server.transacted(self._server.claims, body)


def _horizon(drawn: int, words: Iterable[int]) -> int:
    """Return the last number that no open transaction may still fill.

    ``drawn`` is the last number drawn, and ``words`` are the numbers in the names of the locks. A name holds the lower
    part of a number only. Numbers that were drawn after ``drawn`` was read do not count.
    """
    behind = [(drawn - word) & NUMBER_BITS for word in words]
    return drawn - max([back for back in behind if back <= NUMBER_BITS >> 1], default=0) + ROOM - 1
