"""Where a PostgreSQL database is, and connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from quire.errors import Full, LedgerError, LedgerUnavailable
from quire.ledger.postgres.wire import Manner, Wire

#: How long a server may take to accept a connection, and how long TCP may go unanswered.
CONNECT_SECONDS = 5
UNANSWERED_SECONDS = 20

#: How servers and poolers say that they take no more connections.
_FULL = ("too many clients", "too many connections", "remaining connection slots", "no more connections allowed")

OLDEST_SERVER = 140000


class Address:
    """Where a database is, and how it is named in messages: without its password."""

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise LedgerError(f"this is not an address of a PostgreSQL database: {str(error).strip()}") from None
        given = {name: value for name, value in parts.items() if value is not None}
        self._conninfo = make_conninfo(
            "",
            **{
                "application_name": "quire",
                "client_encoding": "UTF8",  # poolers carry this one from session to session
                "connect_timeout": CONNECT_SECONDS,
                # A server that vanished without a word is noticed within seconds, not hours.
                "keepalives_idle": UNANSWERED_SECONDS // 2,
                "keepalives_interval": 5,
                "keepalives_count": 2,
                "tcp_user_timeout": UNANSWERED_SECONDS * 1000,
                **given,
            },
        )
        self.manner = Manner()
        #: How many connections the server takes; 0: it is not known yet.
        self.most = 0
        self.database = str(given.get("dbname", ""))
        self.shown = f"{given.get('host', 'localhost')}:{given.get('port', 5432)}/{self.database}"

    async def connect(self, settings: Mapping[str, str], schema: str = "", manner: Manner | None = None) -> Wire:
        """A connection whose transactions have these settings, and whose tables are in this schema."""
        try:
            connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self._refused(error) from error
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        wire = Wire(connection, manner or self.manner, schema=schema, settings=f"SELECT {calls}" if calls else "")
        try:
            if wire.version < OLDEST_SERVER:
                raise LedgerError(
                    f"the PostgreSQL server at {self.shown} is version {wire.version // 10000}: "
                    f"{OLDEST_SERVER // 10000} or newer is needed"
                )
        except BaseException:
            await wire.close()
            raise
        return wire

    async def answers(self, place: tuple[str, str], seconds: float) -> bool:
        """Return whether the server at this host and port answers within so many seconds. A refusal is an answer."""
        host, port = place
        there = {"host": host, "port": port, "hostaddr": None, "target_session_attrs": "any"}
        try:
            async with asyncio.timeout(seconds):
                conninfo = make_conninfo(self._conninfo, **there)
                async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
                    await connection.execute("SELECT 1")
        except TimeoutError:
            return False
        except psycopg.Error as error:
            return "FATAL" in str(error)
        return True

    async def takes_transactions(self) -> bool:
        """Return False if a pooler stands there that takes single statements only."""
        try:
            async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                await connection.execute("BEGIN")
                await connection.execute("ROLLBACK")
        except psycopg.Error as error:
            return "statement pooling" not in str(error)
        return True

    def _refused(self, error: psycopg.Error) -> LedgerError:
        text = " ".join(str(error).split())
        if any(words in text for words in _FULL):
            counts = self.most and ("clients" in text or "slots" in text)  # not the limit of a role or database
            taken = f" ({self.most} of {self.most})" if counts else ""
            return Full(
                f"the PostgreSQL server at {self.shown} is full{taken}: it takes no more connections; end what holds "
                "them, raise max_connections, put a pooler before it, or give each process fewer (?connections=6)"
            )
        if "does not exist" in text and "database" in text:
            return LedgerError(
                f"there is no database {self.database!r} at {self.shown}; make it (createdb {self.database}), "
                "or correct the address"
            )
        if "authentication failed" in text or "no password supplied" in text or "pg_hba.conf" in text:
            return LedgerError(f"the PostgreSQL server at {self.shown} does not let this user in: {text}")
        return LedgerUnavailable(
            f"no PostgreSQL server answers at {self.shown}; start it, or correct the address of the ledger ({text})"
        )
