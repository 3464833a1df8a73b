"""The plain face of the client: the same methods without ``await``, made of it in one mechanical place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec

from typing_extensions import TypeVar

from quire.client.client import Client
from quire.client.handle import Handle
from quire.clock import Span
from quire.errors import InputError
from quire.ledger.base import Ledger
from quire.model.record import Record
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from quire.worker.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", default=dict[str, Any])
R = TypeVar("R", default=Any)


def _plain(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[PlainClient, P], T]:
    def wait(self: PlainClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(method(self.client, *args, **kwargs))

    wait.__name__ = method.__name__
    wait.__doc__ = method.__doc__
    return wait


async def _begun(client: Client, options: dict[str, Any]) -> Worker:
    return await client.worker(**options).__aenter__()


class PlainHandle(Generic[R]):
    """A record that was started, and its result to come."""

    def __init__(self, owner: PlainClient, handle: Handle[R]) -> None:
        self.record_id = handle.record_id
        self._owner = owner
        self._handle = handle

    def record(self) -> Record:
        return self._owner._do(self._handle.record())

    def result(self, *, timeout: Span | None = None) -> R:
        """Wait until the record ends, and work for it meanwhile; see ``Handle.result``."""
        return self._owner._do(self._handle.result(timeout=timeout))


class PlainClient:
    """A client without ``await``: ``with quire.open(url, workflows=[...]) as q``. An event loop runs in a thread."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._open = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="quire-client", daemon=True)
        self._thread.start()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._open:
            work.close()
            stands = "closed" if self._loop.is_closed() else "not open yet"
            raise InputError(f"this client is {stands}; use it in a 'with' block: with quire.open(…) as q")
        return self._done(work)

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def __enter__(self) -> PlainClient:
        if self._loop.is_closed():
            raise InputError("this client was closed; make another one with quire.open(…)")
        try:
            self._done(self.client.__aenter__())
        except BaseException:
            self._end()
            raise
        self._open = True
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._done(self.client.__aexit__())
        finally:
            self._end()

    def _end(self) -> None:
        self._open = False
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(
        self,
        workflow: Workflow[D, R, Any] | str,
        data: D | None = None,
        *,
        id: str | None = None,
        after: Span | None = None,
        priority: int = 0,
    ) -> PlainHandle[R]:
        """Start one record; see ``Client.start``."""
        handle = self._do(self.client.start(workflow, data, id=id, after=after, priority=priority))
        return PlainHandle(self, handle)

    def start_many(
        self,
        workflow: Workflow[D, R, Any] | str,
        items: Iterable[D | None],
        *,
        ids: Iterable[str] | None = None,
        after: Span | None = None,
        priority: int = 0,
    ) -> list[PlainHandle[R]]:
        """Start many records; see ``Client.start_many``."""
        handles = self._do(self.client.start_many(workflow, items, ids=ids, after=after, priority=priority))
        return [PlainHandle(self, handle) for handle in handles]

    @contextmanager
    def worker(self, **options: Any) -> Iterator[None]:
        """Run a worker beside what is in the block: ``with q.worker():``."""
        running = self._do(_begun(self.client, options))
        try:
            yield
        finally:
            self._do(running.__aexit__())

    work = _plain(Client.work)
    get = _plain(Client.get)
    find = _plain(Client.find)
    counts = _plain(Client.counts)
    show = _plain(Client.show)
    events = _plain(Client.events)
    workers = _plain(Client.workers)
    standing = _plain(Client.standing)
    until_ended = _plain(Client.until_ended)
    signal = _plain(Client.signal)
    answer = _plain(Client.answer)
    resolve = _plain(Client.resolve)
    move = _plain(Client.move)
    edit = _plain(Client.edit)
    retry = _plain(Client.retry)
    cancel = _plain(Client.cancel)
    prioritise = _plain(Client.prioritise)
    halt = _plain(Client.halt)
    pause = _plain(Client.pause)
    resume = _plain(Client.resume)
    reach = _plain(Client.reach)


def open(ledger: Ledger | str = "sqlite:///.quire/ledger.db", **options: Any) -> PlainClient:
    """Return a plain client: ``with quire.open(url, workflows=[...]) as q``."""
    return PlainClient(Client(ledger, **options))
