"""PostgreSQL, spoken in flushes: statements go out together, and their answers come back together.

The one module that knows psycopg, and it knows no records. psycopg's own pipeline waits for the socket at every
statement; eight of them take 2.7 ms there and 0.16 ms here, where libpq is driven directly: every statement is prepared
once, nothing waits until ``flush``, and of a long one the server has the beginning while its end is being made.

No error of psycopg leaves this module. Each becomes one that says what the caller can do: ``Lost`` (connect again),
``Clash`` (roll back and repeat), ``Spoiled`` (a value that PostgreSQL cannot keep), or an error for the user.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

from quire.errors import LedgerError, LedgerUnavailable, ValueRefused
from quire.installing import install

try:
    import psycopg
    from psycopg import pq
    from psycopg.adapt import Transformer
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise LedgerError(
        f"a PostgreSQL ledger needs the package psycopg, which is not installed; {install('postgres')}"
    ) from error

#: bytes: made by ``array`` or ``single``; everything else goes as text.
Param = bytes | str | int | float | None

#: How long a server may take to accept a connection, and how long TCP may go unanswered.
CONNECT_SECONDS = 10
UNANSWERED_SECONDS = 20

OLDEST_SERVER = 140000
#: Statements that a connection keeps prepared; one that has more is replaced by a new one.
MOST_PREPARED = 500

_TEXT, _BINARY = int(pq.Format.TEXT), int(pq.Format.BINARY)


class Lost(Exception):
    """The connection is gone. ``landed`` says whether a COMMIT was on its way, so that it may have landed."""

    def __init__(self, reason: str, landed: bool = False) -> None:
        super().__init__(reason)
        self.landed = landed


class Clash(Exception):
    """Another transaction was in the way (a deadlock, a row inserted at the same moment): repeat the whole.

    ``exists``: a row of that key exists. If repeating does not help, the value is at fault, not the moment.
    """

    def __init__(self, reason: str, exists: bool = False) -> None:
        super().__init__(reason)
        self.exists = exists


class Wrong(Exception):
    """A statement did not find what it takes for granted, and divided by zero: nothing was written."""


class Spoiled(ValueRefused):
    """PostgreSQL cannot keep one of the values; nothing was written."""


# -- arrays ------------------------------------------------------------------------------------------------------

_OIDS = {"text": 25, "bigint": 20, "float8": 701, "boolean": 16}
_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i").pack
_NULL = b"\xff\xff\xff\xff"
_MANY = 1024
#: Lengths and NULL as characters that latin-1 turns into their four bytes.
_MARKS = [_LENGTH(size).decode("latin-1") for size in range(_MANY)]
_NONE = _NULL.decode("latin-1")
_NUMBERS = {"bigint": "iq", "float8": "id"}
_PAIRS = {name: struct.Struct(">" + pair).pack for name, pair in _NUMBERS.items()}
_BARE = {"bigint": struct.Struct(">q").pack, "float8": struct.Struct(">d").pack}
_TRUE, _FALSE = b"\0\0\0\1\1", b"\0\0\0\1\0"


def _element(type_: str, value: Any) -> bytes:
    if value is None:
        return _NULL
    if type_ == "text":
        text: bytes = value.encode()
        return _LENGTH(len(text)) + text
    return _PAIRS[type_](8, value)


def _texts(values: Sequence[str | None], null: bool) -> bytes:
    """The elements of an array of texts. Plain short ones are put together first and turned into bytes in one go."""
    texts = [value for value in values if value is not None]
    sizes = set(map(len, texts))
    if max(sizes, default=0) < _MANY and "".join(texts).isascii():
        if len(sizes) == 1 and not null:
            mark = _MARKS[sizes.pop()]
            return (mark + mark.join(texts)).encode("latin-1")
        return "".join([_NONE if value is None else _MARKS[len(value)] + value for value in values]).encode("latin-1")
    return b"".join([_element("text", value) for value in values])


def array(type_: str, values: Sequence[Any]) -> bytes:
    """A one-dimensional array in PostgreSQL's binary form: several times faster to make and to read than text."""
    count = len(values)
    null = None in values
    head = _HEAD.pack(1, null, _OIDS[type_], count, 1)
    try:
        if count > 1 and values.count(values[0]) == count and type_ != "boolean":
            return head + _element(type_, values[0]) * count  # in many columns a batch has one value
        if type_ == "text":
            return head + _texts(values, null)
        if type_ == "boolean":
            return head + b"".join([_NULL if value is None else _TRUE if value else _FALSE for value in values])
        if null:
            pair = _PAIRS[type_]
            return head + b"".join([_NULL if value is None else pair(8, value) for value in values])
        flat = [8] * (2 * count)
        flat[1::2] = values
        return head + struct.pack(">" + _NUMBERS[type_] * count, *flat)
    except (struct.error, UnicodeEncodeError) as error:
        raise Spoiled(str(error)) from error


def single(type_: str, value: Any) -> bytes | None:
    """One value in PostgreSQL's binary form."""
    if value is None:
        return None
    try:
        if type_ == "text":
            text: bytes = value.encode()
            return text
        return b"\1" if value is True else b"\0" if value is False else _BARE[type_](value)
    except (struct.error, UnicodeEncodeError) as error:
        raise Spoiled(str(error)) from error


def _written(value: bool | str | int | float) -> bytes:
    """A value as PostgreSQL reads it from text."""
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if not isinstance(value, str):
        return repr(value).encode()
    if "\0" in value:  # libpq would take it for the end of the text
        raise Spoiled("a text holds a NUL character")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise Spoiled(str(error)) from error


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# -- connections -------------------------------------------------------------------------------------------------


class Answer:
    """What the server said to one statement."""

    def __init__(self, result: Any, transformer: Any) -> None:
        self._result = result
        self._transformer = transformer

    def rows(self) -> list[tuple[Any, ...]]:
        self._transformer.set_pgresult(self._result)
        found: list[tuple[Any, ...]] = self._transformer.load_rows(0, self._result.ntuples, tuple)
        return found

    @property
    def count(self) -> int:
        """How many rows were written."""
        return self._result.command_tuples or 0


class Wire:
    """One connection, for one block of code at a time.

    A block may pass it on when all that it will send is on its way (``flush(last=True)``): the server finds what the
    next one sends when it has answered, and need not wait for it. Answers come in the order of the flushes.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.enter_pipeline_mode()
        self._transformer = Transformer(connection)
        self._names: dict[str, bytes] = {}
        self._made = 0
        #: For each answer that is still to come: the statement that it prepares, or None.
        self._expected: list[str | None] = []
        self._committing = False
        #: So many flushes are not answered yet, or were not read to their end.
        self.under_way = 0
        #: When the last of them is.
        self._last: asyncio.Future[None] | None = None
        self._broken = False
        #: Lets the next block have it; None while no block has it, or may pass it on.
        self.pass_on: Callable[[], None] | None = None
        #: The socket is listened to from the first flush on: to begin and to end that for each would take six calls.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket = -1
        self._stirred: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._fault: psycopg.Error | None = None
        self.pid = self._pg.backend_pid
        self.version = self._pg.server_version

    def send(self, sql: str, *params: Param) -> int:
        """Add a statement to the next flush; answers its place in what that returns."""
        given = [param if param is None or isinstance(param, bytes) else _written(param) for param in params]
        forms = [_BINARY if isinstance(param, bytes) else _TEXT for param in params]
        try:
            name = self._names.get(sql)
            if name is None:
                self._made += 1
                name = self._names[sql] = b"q%d" % self._made
                self._pg.send_prepare(name, sql.encode())
                self._expected.append(sql)
            self._pg.send_query_prepared(name, given, forms, result_format=_BINARY)
            self._expected.append(None)
        except psycopg.Error as error:
            raise self._quire_error(error) from error
        self._committing |= sql == "COMMIT"
        return self._expected.count(None) - 1

    def hurry(self) -> None:
        """Let the server answer what was sent so far when it is done, and not only at the end of the flush."""
        try:
            self._pg.send_flush_request()
        except psycopg.Error as error:
            raise self._quire_error(error) from error

    async def flush(
        self,
        *,
        commits: bool = False,
        early: tuple[int, Callable[[Answer], None]] | None = None,
        last: bool = False,
    ) -> list[Answer]:
        """Wait for the answers to all that was sent. The first error is raised; what follows it was not done.

        What is sent without a BEGIN is a transaction by itself, from one flush to the next; ``commits`` says that this
        one ends it, so that it may have landed if no answer comes. ``early`` reads the answer at a place as soon as it
        is there, while the server goes on; what it reads stands only when this returns. ``last``: the block sends
        nothing more, so the next one may have the connection meanwhile.
        """
        committing, self._committing = self._committing or commits, False
        before, read = self._last, asyncio.get_running_loop().create_future()
        self._last = read
        self.under_way += 1
        try:
            self._pg.pipeline_sync()
            while self._pg.flush():
                await self._room()
            expected, self._expected = self._expected, []
            if last and self.pass_on is not None and len(self._names) < MOST_PREPARED:
                self.pass_on()
            if before is not None:
                if not self._pg.is_busy():  # to send, libpq may have read what the one before waits for
                    self._stir()
                await before
            if self._broken:  # what it left unread would be taken for the answer to this
                raise psycopg.OperationalError("the connection was lost")
            results: list[Any] = []
            soon = [n for n, prepared in enumerate(expected) if prepared is None][early[0]] if early is not None else -1
            while True:
                while self._pg.is_busy():
                    await self._stirs()
                result = self._pg.get_result()
                if result is None:
                    if self._pg.status != pq.ConnStatus.OK:
                        raise psycopg.OperationalError("the connection was lost")
                elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                    break
                else:
                    results.append(result)
                    if early is not None and len(results) == soon + 1 and result.status == pq.ExecStatus.TUPLES_OK:
                        early[1](Answer(result, self._transformer))
            self.under_way -= 1
        except psycopg.Error as error:
            self._broken = True
            raise self._quire_error(error, committing) from error
        except BaseException:
            self._broken = True
            raise
        finally:
            _done(read)  # whoever waited for it may have been cancelled, and it too
            if self._last is read:
                self._last = None
        answers, failed = [], None
        for prepared, result in zip_longest(expected, results):  # an error of the commit itself is of no statement
            if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED):
                if prepared is not None:
                    del self._names[prepared]
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    failed = failed or psycopg.errors.error_from_result(result)
            elif prepared is None:
                answers.append(Answer(result, self._transformer))
        if failed is not None:
            raise self._quire_error(failed, committing) from failed
        return answers

    async def ask(self, sql: str, *params: Param) -> list[tuple[Any, ...]]:
        """One statement by itself."""
        self.send(sql, *params)
        (answer,) = await self.flush()
        return answer.rows()

    async def notified(self) -> list[int]:
        """Wait for notifications; answers which servers' processes sent them."""
        try:
            while True:
                pids = []
                while (notify := self._pg.notifies()) is not None:
                    pids.append(notify.be_pid)
                if pids:
                    return pids
                await self._stirs()
        except psycopg.Error as error:
            raise self._quire_error(error) from error

    async def _stirs(self) -> None:
        """Until something has come from the server."""
        self._stirred = self._listening().create_future()
        await self._stirred

    async def _room(self) -> None:
        """Until there is room to write to the server."""
        loop = self._listening()
        self._writable = loop.create_future()
        loop.add_writer(self._socket, _done, self._writable)
        try:
            await self._writable
        finally:
            with suppress(OSError):  # libpq has closed it
                loop.remove_writer(self._socket)

    def _listening(self) -> asyncio.AbstractEventLoop:
        """The loop, which listens to what the server says from now on."""
        if self._fault is not None:
            raise self._fault
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._deafen()
            self._loop, self._socket = loop, self._pg.socket
            loop.add_reader(self._socket, self._came)
        return loop

    def _came(self) -> None:
        """Something has come. It is taken at once, expected or not: the socket would tell of it again and again."""
        try:
            self._pg.consume_input()
        except psycopg.Error as error:
            self._fault = error
            self._deafen()
            if self._writable is not None:
                _done(self._writable)
        self._stir()

    def _stir(self) -> None:
        if self._stirred is not None:
            _done(self._stirred)

    def _deafen(self) -> None:
        """Listen to the socket no more."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(OSError):  # libpq has closed it
                self._loop.remove_reader(self._socket)
        self._loop = None

    @property
    def alive(self) -> bool:
        """As far as is known here."""
        return bool(self._pg.status == pq.ConnStatus.OK) and not self._broken

    @property
    def clean(self) -> bool:
        """Nothing is under way: the next one may have it."""
        return (
            self.alive
            and not (self.under_way or self._expected)
            and len(self._names) < MOST_PREPARED
            and self._pg.transaction_status == pq.TransactionStatus.IDLE
        )

    async def rollback(self) -> None:
        """Undo what was sent since BEGIN, whatever became of it."""
        for _ in range(2):  # a statement sent before may fail and take the first ROLLBACK with it
            if self.clean or self._broken or self._pg.status != pq.ConnStatus.OK:
                return
            try:
                self.send("ROLLBACK")
                await self.flush()
            except Lost:
                return
            except (Clash, Wrong, Spoiled, LedgerError):
                continue

    async def close(self) -> None:
        """Close the connection. Those who wait for answers get an error."""
        self._broken = True
        self._deafen()
        await self._connection.close()
        self._stir()

    def _quire_error(self, error: psycopg.Error, landed: bool = False) -> Exception:
        """Return the error that says what the caller can do. ``landed``: a COMMIT was on its way."""
        text = str(error).strip().split("\n")[0]
        state = error.sqlstate or ""
        # 25006: after a failover this server only reads; another one has its place.
        if (
            self._broken
            or self._pg.status != pq.ConnStatus.OK
            or state[:3] == "57P"
            or state[:2] == "08"
            or state in ("25P03", "25006")
        ):
            self._broken = True
            return Lost(text, landed)
        if state == "22012":
            return Wrong(text)
        # 26000: it stands on a statement of the flush before it, which failed before that was prepared.
        if state in ("40001", "40P01", "23505", "26000"):
            return Clash(text, exists=state == "23505")
        if isinstance(error, psycopg.DataError | psycopg.IntegrityError) or state[:2] == "54":
            return Spoiled(text)
        if isinstance(
            error, psycopg.OperationalError
        ):  # a full disk, no memory, a lock or a statement that takes too long
            return LedgerUnavailable(f"the PostgreSQL server could not do it: {text}")
        return LedgerError(f"the PostgreSQL server refuses: {text}")


class Address:
    """Where a database is, and how it is named in messages: without its password."""

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise LedgerError(f"this is no address of a PostgreSQL database: {str(error).strip()}") from None
        given = {name: value for name, value in parts.items() if value is not None}
        self._conninfo = make_conninfo(
            "",
            **{
                "application_name": "quire",
                "connect_timeout": CONNECT_SECONDS,
                # A server that vanished without a word is noticed within seconds, not hours.
                "keepalives_idle": UNANSWERED_SECONDS // 2,
                "keepalives_interval": 5,
                "keepalives_count": 2,
                "tcp_user_timeout": UNANSWERED_SECONDS * 1000,
                **given,
            },
        )
        self.database = str(given.get("dbname", ""))
        self.shown = f"{given.get('host', 'localhost')}:{given.get('port', 5432)}/{self.database}"

    async def connect(self, settings: Mapping[str, str]) -> Wire:
        """A connection with these settings for its session."""
        try:
            connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self._refused(error) from error
        wire = Wire(connection)
        try:
            if wire.version < OLDEST_SERVER:
                raise LedgerError(
                    f"the PostgreSQL server at {self.shown} is version {wire.version // 10000}: "
                    f"{OLDEST_SERVER // 10000} or newer is needed"
                )
            values: list[str] = []
            for name, value in settings.items():
                values += (name, value)
            calls = [f"set_config(${place}, ${place + 1}, false)" for place in range(1, len(values), 2)]
            await wire.ask(f"SELECT {', '.join(calls)}", *values)
        except BaseException:
            await wire.close()
            raise
        return wire

    def _refused(self, error: psycopg.Error) -> LedgerError:
        text = " ".join(str(error).split())
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
