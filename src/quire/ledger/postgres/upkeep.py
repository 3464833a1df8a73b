"""What is done to a ledger as a whole, and seldom: settings, deleting what nothing names, taking over a copy."""

from __future__ import annotations

from collections.abc import Sequence

from quire.errors import LedgerError
from quire.ledger import columns as rows
from quire.ledger.base import Row, Tidied
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.server import EXCLUSIVE, Server
from quire.ledger.postgres.wire import Wire, array
from quire.ledger.postgres.writer import Writer
from quire.model.receipt import OWN
from quire.model.record import FORGOTTEN
from quire.model.side import Setting
from quire.rules.conditions import forgotten_sql


class Upkeep:
    """The verbs ``keep``, ``tidy`` and ``restore``."""

    def __init__(self, server: Server, locked: Locked, inline_bytes: int) -> None:
        self._server = server
        self._locked = locked
        self._inline_bytes = inline_bytes

    async def keep(self, setting: Setting) -> bool:
        if setting.version == 0:
            sql = "INSERT INTO settings VALUES ($1, $2, 1 + $3::bigint) ON CONFLICT DO NOTHING RETURNING 1"
        else:
            sql = "UPDATE settings SET value = $2, version = version + 1 WHERE name = $1 AND version = $3 RETURNING 1"
        return bool(await self._server.changed(sql, setting.name, setting.value, setting.version))

    async def strip(self, record_ids: Sequence[str]) -> int:
        of = f"(SELECT record_id FROM records WHERE record_id = ANY($1::text[]) AND attempt = {FORGOTTEN})"
        ids = array("text", record_ids)

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            sql = f"DELETE FROM receipts WHERE record_id IN {of} AND NOT starts_with(key, $2)"
            gone = wire.send(sql, ids, OWN)
            wire.send(f"DELETE FROM fanins WHERE parent_id IN {of}", ids)
            wire.send(f"UPDATE signals SET value = 'null' WHERE record_id IN {of}", ids)
            wire.send("COMMIT")
            return (await wire.flush())[gone].count

        return await self._server.transacted(self._server.claims, body)

    async def tidy(self, before: float) -> Tidied:
        blobs = f"FROM blobs WHERE {rows.unnamed_blobs()}"

        async def body(wire: Wire) -> Tidied:
            # Blobs are looked for without the lock first, because mostly there are none.
            ((some,),) = await wire.ask(f"SELECT EXISTS (SELECT 1 FROM blobs) AND EXISTS (SELECT 1 {blobs})")
            wire.send("BEGIN")
            # Alone, so that nobody names a blob, or intends an act, while it is decided that nothing does.
            wire.send(EXCLUSIVE, self._server.control_key)
            gone = wire.send(f"DELETE {blobs}") if some else None
            workers = wire.send(f"DELETE FROM workers WHERE {forgotten_sql(before='$1::float8')}", before)
            wire.send("COMMIT")
            answers = await wire.flush()
            return Tidied(answers[gone].count if gone is not None else 0, answers[workers].count)

        return await self._server.transacted(self._server.long_reads, body)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        async def body(wire: Wire) -> None:
            view = await self._locked.alone(wire)
            if not view.sealed:
                raise LedgerError(
                    f"the ledger {self._server.address.shown} is open; rows are copied into a closed one only"
                )
            Writer(wire, self._inline_bytes).restore(type_, given)
            wire.send("UPDATE ledger SET epoch = $1::bigint", epoch)
            wire.send("COMMIT")
            await wire.flush()

        await self._server.transacted(self._server.claims, body)
