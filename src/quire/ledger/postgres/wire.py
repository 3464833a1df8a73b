"""PostgreSQL, spoken in flushes: statements go out together, and their answers come back together.

This module and ``address`` know psycopg, and no records. psycopg's own pipeline waits for the socket at every
statement; eight of them take 2.7 ms there and 0.16 ms here, where libpq is driven directly: every statement is prepared
once, nothing waits until ``flush``, and of a long one the server has the beginning while its end is being made.

A connection leaves no state in its session, because a pooler may give each transaction another one. Names of tables
carry their schema, and the first statement of each transaction sets the limits and the planner for this transaction
alone. A prepared statement is named after its text, so that a name never means another statement, whoever made it.

No error of psycopg leaves this module. Each becomes one that says what the caller can do: ``Lost`` (connect again),
``Clash`` (roll back and repeat), ``Spoiled`` (a value that PostgreSQL cannot keep), or an error for the user.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

from quire.errors import LedgerError, LedgerUnavailable, ValueRefused
from quire.installing import install
from quire.ledger.busy import busy
from quire.ledger.postgres.names import qualified

try:
    import psycopg
    from psycopg import pq
    from psycopg.adapt import Transformer
except ImportError as error:
    raise LedgerError(
        f"a PostgreSQL ledger needs the package psycopg, which is not installed; {install('postgres')}"
    ) from error

#: bytes: made by ``array`` or ``single``; everything else goes as text.
Param = bytes | str | int | float | None

#: Statements that a connection keeps prepared; one that has more is replaced by a new one.
MOST_PREPARED = 500

_TEXT, _BINARY = int(pq.Format.TEXT), int(pq.Format.BINARY)
#: The statements that begin or end a transaction, and what is sent for them.
_BOUNDS = {"BEGIN": "BEGIN ISOLATION LEVEL READ COMMITTED", "COMMIT": "COMMIT", "ROLLBACK": "ROLLBACK"}


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


@dataclass
class Manner:
    """How all connections to one address speak."""

    #: Statements are prepared under a name. Off behind a pooler that does not carry names from session to session.
    named: bool = True
    #: A pooler stands between this process and the server.
    pooled: bool = False


#: In the place of a statement's answer: nobody asked for it.
_UNASKED = ""


class Wire:
    """One connection, for one block of code at a time.

    A block may pass it on when all that it will send is on its way (``flush(last=True)``): the server finds what the
    next one sends when it has answered, and need not wait for it. Answers come in the order of the flushes.
    """

    def __init__(
        self,
        connection: psycopg.AsyncConnection[Any],
        manner: Manner | None = None,
        *,
        schema: str = "",
        settings: str = "",
    ) -> None:
        """``settings``: the statement that each transaction begins with; ``schema``: where the ledger's tables are."""
        self._connection = connection
        self._manner = manner or Manner()
        self._schema = schema
        self._settings = settings
        #: Within BEGIN and COMMIT; and the settings of the transaction were sent.
        self._in_block = self._begun = False
        self._pg = connection.pgconn
        self._pg.enter_pipeline_mode()
        self._transformer = Transformer(connection)
        #: Prepared statements, by their text as it was given; and the texts with schemas of those that are not.
        self._names: dict[str, bytes] = {}
        self._texts: dict[str, bytes] = {}
        #: For each answer that is still to come: the statement that it prepares, None, or ``_UNASKED``.
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
        if sql in _BOUNDS:
            return self._bound(sql)
        if not self._begun:
            self._set()
        given = [param if param is None or isinstance(param, bytes) else _written(param) for param in params]
        self._put(sql, given, [_BINARY if isinstance(param, bytes) else _TEXT for param in params])
        return self._expected.count(None) - 1

    def _bound(self, sql: str) -> int:
        """Begin or end a transaction."""
        self._put(_BOUNDS[sql], [], [])
        place = self._expected.count(None) - 1
        self._in_block = self._begun = sql == "BEGIN"
        self._committing |= sql == "COMMIT"
        if self._in_block:
            self._set()
        return place

    def _set(self) -> None:
        """Send the settings of the transaction that begins."""
        self._begun = True
        if self._settings:
            self._put(self._settings, [], [])
            self._expected[-1] = _UNASKED

    def _put(self, sql: str, given: Sequence[bytes | None], forms: Sequence[int]) -> None:
        try:
            if self._manner.named:
                name = self._names.get(sql)
                if name is None:
                    text = qualified(sql, self._schema).encode()
                    name = self._names[sql] = b"q_" + blake2b(text, digest_size=16).hexdigest().encode()
                    self._pg.send_prepare(name, text)
                    self._expected.append(sql)
                self._pg.send_query_prepared(name, given, forms, result_format=_BINARY)
            else:
                text = self._texts.get(sql) or self._texts.setdefault(sql, qualified(sql, self._schema).encode())
                self._pg.send_query_params(text, given, param_formats=forms, result_format=_BINARY)
            self._expected.append(None)
        except psycopg.Error as error:
            raise self._quire_error(error) from error

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
        self._begun = self._in_block
        before, read = self._last, asyncio.get_running_loop().create_future()
        self._last = read
        self.under_way += 1
        try:
            expected = await self._synced(before, last=last)
            results = await self._results(expected, early)
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
        return self._answers(expected, results, committing)

    async def _synced(self, before: asyncio.Future[None] | None, *, last: bool) -> list[str | None]:
        """Send all that is gathered, with the mark that ends it. Wait until the flush before this one has been read.

        Return what was sent: for each statement None, for each preparation the name of what it prepares.
        """
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
        return expected

    async def _results(self, expected: Sequence[Any], early: tuple[int, Callable[[Answer], None]] | None) -> list[Any]:
        """Read the results up to the mark. ``early`` gets its answer as soon as it is there."""
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
                return results
            else:
                results.append(result)
                if early is not None and len(results) == soon + 1 and result.status == pq.ExecStatus.TUPLES_OK:
                    early[1](Answer(result, self._transformer))

    def _answers(self, expected: Sequence[str | None], results: Sequence[Any], committing: bool) -> list[Answer]:
        """Return the answers that were asked for, or raise the first error."""
        if len(results) > len(expected) and results[-1].status != pq.ExecStatus.FATAL_ERROR:
            self._broken = True  # the answers are not those to what was sent: nobody can say what they answer
            raise Lost(f"{len(results)} answers came to {len(expected)} statements", committing)
        answers, failed = [], None
        for prepared, result in zip_longest(expected, results):  # an error of the commit itself is of no statement
            if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED):
                if prepared:
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
        """Return the loop, which listens to what the server says from now on."""
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
                self._in_block = self._begun = False
                return
            try:
                self.send("ROLLBACK")
                await self.flush()
            except Lost:
                return
            except (Clash, Wrong, Spoiled, LedgerError):
                continue

    @property
    def place(self) -> tuple[str, str]:
        """The host and the port to which this connection leads."""
        return self._pg.host.decode(), self._pg.port.decode()

    def give_up(self, why: str) -> None:
        """Let whoever waits for an answer go: none will come."""
        self._broken, self._fault = True, psycopg.OperationalError(why)
        self._deafen()
        if self._writable is not None:
            _done(self._writable)
        self._stir()

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
        if state == "42P05" or (state == "26000" and self._manner.pooled):
            # A pooler gave this connection another session. The server has said no, so nothing has landed.
            self._manner.named, self._broken = False, True
            return Lost(text)
        # 26000: it stands on a statement of the flush before it, which failed before that was prepared.
        if state in ("40001", "40P01", "23505", "26000"):
            return Clash(text, exists=state == "23505")
        if state == "55P03":
            return busy("a row of the PostgreSQL server")
        if isinstance(error, psycopg.DataError | psycopg.IntegrityError) or state[:2] == "54":
            return Spoiled(text)
        if isinstance(
            error, psycopg.OperationalError
        ):  # a full disk, no memory, a lock or a statement that takes too long
            return LedgerUnavailable(f"the PostgreSQL server could not do it: {text}")
        return LedgerError(f"the PostgreSQL server refuses: {text}")
