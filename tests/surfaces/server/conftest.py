"""A ledger with a workflow, the API for it, and a real server with a worker beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx2
import pytest
from pydantic import BaseModel

from quire import Fail, Retry, Run, Workflow
from quire.client.client import Client
from quire.surfaces.server import app, serve

T = TypeVar("T")


class Article(BaseModel):
    keyword: str
    draft: str = ""


#: While it holds words, posting an article about one of them fails.
BROKEN: set[str] = set()


def make_publish() -> Workflow[Article, str, None]:
    publish: Workflow[Article, str, None] = Workflow("publish", data=Article, result=str)

    @publish.step(then="review")
    async def draft(run: Run[Article]) -> None:
        run.data.draft = f"About {run.data.keyword}."

    @publish.step(then=["post", "archive"])
    async def review(run: Run[Article]) -> Literal["post", "archive"]:
        answer = await run.ask(f"Publish {run.data.keyword!r}?", show=run.data.draft, edit=["draft"])
        return "post" if answer else "archive"

    @publish.step(then="archive", retry=Retry(1))
    async def post(run: Run[Article]) -> None:
        if run.data.keyword in BROKEN:
            raise Fail(f"the site {run.data.keyword!r} is gone")

    @publish.step
    async def archive(run: Run[Article]) -> str:
        return run.data.draft

    return publish


def make_order() -> Workflow[dict[str, Any], Any, None]:
    order: Workflow[dict[str, Any], Any, None] = Workflow("order")

    @order.step
    async def wait(run: Run[dict[str, Any]]) -> Any:
        return await run.wait("paid", type=Any)

    return order


@asynccontextmanager
async def opened(
    url: str = "memory:", more: Sequence[Workflow[Any, Any, Any]] = (), **options: Any
) -> AsyncIterator[Client]:
    async with Client(url, workflows=[make_publish(), make_order(), *more], who="tester", **options) as client:
        yield client


@asynccontextmanager
async def calling(
    client: Client, *, token: str = "", base: str = "http://127.0.0.1", **options: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    """The API without a network."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(app(client, **options), client=("127.0.0.1", 1))
    async with httpx2.AsyncClient(transport=transport, base_url=base, headers=headers) as http:
        yield http


class Site:
    """A server on a port of its own, with a worker beside it, in a thread."""

    def __init__(
        self, url: str, host: str = "127.0.0.1", more: Sequence[Workflow[Any, Any, Any]] = (), **options: Any
    ) -> None:
        self.more = more
        self.host = host
        self.ledger = url
        self.options = options
        self.port = 0
        self.problem: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="site")

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stop = asyncio.Event()
        try:
            async with opened(self.ledger, self.more) as self.client:
                started: asyncio.Future[int] = self.loop.create_future()
                serving = asyncio.ensure_future(serve(self.client, self.host, 0, started=started, **self.options))
                worker = self.client.worker(concurrency=20)
                working = asyncio.ensure_future(worker.run())
                self.port = await started
                self._ready.set()
                await self.stop.wait()
                worker.grace = 0.0
                worker.stop()
                await working
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
        except BaseException as error:
            self.problem = error
            raise
        finally:
            self._ready.set()

    def do(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Do something with the site's own client, in its loop."""
        return asyncio.run_coroutine_threadsafe(work(self.client), self.loop).result(30)

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(30)
        assert self.problem is None, self.problem
        return self

    def __exit__(self, *exc: object) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def running(url: str, **options: Any) -> Iterator[Site]:
    with Site(url, **options) as site:
        yield site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    BROKEN.clear()
    with running(f"sqlite:///{tmp_path}/ledger.db") as found:
        yield found
