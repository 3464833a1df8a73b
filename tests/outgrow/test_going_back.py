"""A living worker notices that another server took the place of its own, and lacks what was acknowledged."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from quire import Status
from quire.client import going_back
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.ledger.lost import Lost, loss_of
from quire.rules import adoption
from quire.testing.postgres import PostgresServer
from tests.runtime.test_going_back import Shop


def put_in_place(server: PostgresServer, url: str, copy: str) -> None:
    """Put an older copy of a database in its place, as a fail-over to a standby that was behind does."""
    names = [sql.Identifier(urlsplit(each).path.removeprefix("/")) for each in (url, copy)]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(names[0]))
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(names[1], names[0]))


async def until_lost(client: Client) -> Lost:
    for _ in range(600):
        loss, _ = await loss_of(client.ledger)
        if loss is not None:
            return loss
        await SYSTEM.sleep(0.1)
    raise AssertionError("nobody noticed")


async def test_a_living_worker_notices_and_nothing_is_paid_twice(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    shop = Shop()
    ids = ["a", "b", "c"]
    async with Client(postgres_url, workflows=[shop.workflow()]) as one:
        await one.start_many("order", [{}] * 3, ids=ids)
        await one.work()
    copy = postgres_server.create_database(postgres_url)

    async with Client(postgres_url, workflows=[shop.workflow()], state=str(tmp_path)) as one:
        async with one.worker(lease=4.0):  # it beats every second
            for record_id in ids:
                await one.signal(record_id, "go")
                await one.until_ended(record_id)
            assert sorted(shop.paid) == ids
            put_in_place(postgres_server, postgres_url, copy)

            loss = await until_lost(one)
            assert set(loss.records) == set(ids)
            assert loss.servers[0] == loss.servers[1] != ""  # this cluster went on; the database is an older one
        assert (await going_back.adopt(one.link, one.acts, "ann")).asks == 3
        for record_id in ids:
            await one.answer(record_id, adoption.GO_ON)
            await one.signal(record_id, "go")
        await one.work()
        assert {record.status for record in await one.find()} == {Status.DONE}
        assert sorted(shop.paid) == ids
