"""A mirror in a PostgreSQL database: tables with the columns of ``quire.upkeep.mirror``, for those who ask by SQL."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from quire.clock import new_id
from quire.errors import InputError
from quire.ledger.postgres.address import Address
from quire.ledger.postgres.wire import Wire
from quire.upkeep.mirror import TABLES, Table, Target

_TYPES: Final = {"STRING": "text", "INTEGER": "bigint", "TIMESTAMP": "timestamptz", "JSON": "jsonb"}


class PostgresTarget(Target):
    """``postgresql://…?schema=NAME``; without a schema it is ``quire_mirror``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        self.schema = dict(options).get("schema", "quire_mirror")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema):
            raise InputError(f"{self.schema!r} is not the name of a schema; use lower-case letters, digits and _")
        others = urlencode([(name, value) for name, value in options if name != "schema"])
        self._address = Address(urlunsplit(parts._replace(query=others)))
        self._wire: Wire | None = None

    async def open(self) -> str:
        if self._wire is None:
            self._wire = await self._address.connect({})
        wire = self._wire
        ((ledger,),) = await wire.ask("SELECT to_regclass($1) IS NOT NULL", f"{self.schema}.ledger")
        if ledger:
            raise InputError(f"the schema {self.schema!r} holds a ledger; give the mirror another one (?schema=NAME)")
        await wire.ask(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        for table in TABLES:
            await wire.ask(self._made(table))
        await wire.ask(f"CREATE TABLE IF NOT EXISTS {self.schema}.mirror (mirror text NOT NULL, one bool UNIQUE)")
        await wire.ask(f"INSERT INTO {self.schema}.mirror VALUES ($1, true) ON CONFLICT DO NOTHING", new_id("m_"))
        ((name,),) = await wire.ask(f"SELECT mirror FROM {self.schema}.mirror")
        return str(name)

    def _made(self, table: Table) -> str:
        columns = ", ".join(
            f"{column.name} {_TYPES[column.kind]}{' NOT NULL' if column.required else ''}" for column in table.columns
        )
        key = ", ".join(table.key)
        return f"CREATE TABLE IF NOT EXISTS {self.schema}.{table.name} ({columns}, PRIMARY KEY ({key}))"

    async def write(self, after: int, last: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        wire = self._wire
        assert wire is not None
        wire.send("BEGIN")
        for table in TABLES:
            if rows[table.name]:
                # A character that PostgreSQL cannot keep becomes a question mark.
                text = json.dumps(rows[table.name], ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
                wire.send(self._upsert(table), text)
        wire.send("COMMIT")
        await wire.flush()

    def _upsert(self, table: Table) -> str:
        names = ", ".join(column.name for column in table.columns)
        types = ", ".join(f"{column.name} {_TYPES[column.kind]}" for column in table.columns)
        sql = (
            f"INSERT INTO {self.schema}.{table.name} AS kept ({names}) "
            f"SELECT DISTINCT ON ({', '.join(table.key)}) {names} FROM jsonb_to_recordset($1::jsonb) AS given({types}) "
            f"ON CONFLICT ({', '.join(table.key)}) DO "
        )
        if not table.newer:
            return sql + "NOTHING"
        values = ", ".join(f"{c.name} = excluded.{c.name}" for c in table.columns if c.name not in table.key)
        return sql + (
            f"UPDATE SET {values} WHERE kept.{table.newer} IS NULL OR excluded.{table.newer} >= kept.{table.newer}"
        )

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()
