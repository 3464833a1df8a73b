"""The server of the tests can be restarted, also at once as by a crash, and keeps what it had acknowledged."""

from __future__ import annotations

import psycopg
import pytest

from quire.testing.postgres import PostgresServer


@pytest.mark.parametrize("immediate", [False, True])
def test_a_server_that_was_restarted_is_at_its_address_with_all_that_it_had_acknowledged(immediate: bool) -> None:
    with PostgresServer(durable=True) as server:
        with psycopg.connect(server.url, autocommit=True) as before:
            before.execute("CREATE TABLE kept (number int)")
            for number in (1, 2):
                before.execute("INSERT INTO kept VALUES (%s)", [number])
            server.restart(immediate=immediate)
            with pytest.raises(psycopg.OperationalError):
                before.execute("SELECT 1")
        with psycopg.connect(server.url, autocommit=True) as after:
            assert after.execute("SELECT number FROM kept ORDER BY number").fetchall() == [(1,), (2,)]
