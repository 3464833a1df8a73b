"""The callers of ``bench/server_load.py``, few: mixed reads and acts while a worker runs, and no error."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import sys
from pathlib import Path
from typing import Any

from quire.client.client import Client
from quire.surfaces.server import serving
from tests.surfaces.server.conftest import Site

BENCH = Path(__file__).parents[3] / "bench" / "callers.py"


def bench() -> Any:
    spec = importlib.util.spec_from_file_location("callers", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["callers"] = module
    spec.loader.exec_module(module)
    return module


def test_mixed_reads_and_acts_are_answered_without_an_error(site: Site) -> None:
    load = bench()

    async def standing(client: Client) -> None:
        names = [f"stands-{n:05}" for n in range(load.STANDING)]
        await client.start_many("order", [{}] * load.STANDING, ids=names, after=3600)

    site.do(standing)
    told = asyncio.run(load.Callers(site.port, 60.0, 1).run(2.0))

    assert told.errors == 0, told.wrong
    assert len(told.all) == 120
    assert len(told.took) >= 10, "the mix is not mixed"
    assert told.streamed > 0


def test_answers_do_not_wait_for_nagles_algorithm() -> None:
    listening = serving._bound("127.0.0.1", 0)
    try:
        # asyncio sets TCP_NODELAY only on sockets that name their protocol.
        assert listening.proto == socket.IPPROTO_TCP
    finally:
        listening.close()
