"""A server that is frozen accepts what is sent and never answers: this is known within seconds."""

from __future__ import annotations

import asyncio
import os
import signal

import psycopg
import pytest

from quire.clock import SYSTEM
from quire.errors import LedgerUnavailable
from quire.ledger.postgres import liveness
from quire.ledger.postgres.ledger import PostgresLedger
from quire.model.side import Setting
from quire.testing.postgres import PostgresServer


def backends(url: str) -> list[int]:
    """The processes that serve connections to this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return [pid for (pid,) in rows]


async def test_a_connection_whose_server_does_not_answer_is_given_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.2)
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    try:
        await ledger.keep(Setting("a", "1", 0))
        frozen = backends(postgres_url)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        answers = [False]

        async def answer(place: tuple[str, str], seconds: float) -> bool:
            return answers.pop() if answers else True  # the next connection finds another server

        monkeypatch.setattr(ledger.server.address, "answers", answer)
        try:
            begun = SYSTEM.boottime()
            with pytest.raises(LedgerUnavailable, match="does not answer"):
                await ledger.keep(Setting("a", "2", 1))  # it may have landed: whoever asked sends it again
            assert SYSTEM.boottime() - begun < 30  # not after the patience of a minute
            assert ledger.interruptions
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        assert await ledger.setting("a") is not None
    finally:
        await ledger.close()


@pytest.mark.skipif(not os.environ.get("QUIRE_OUTGROW"), reason="it takes half a minute: make outgrow")
async def test_a_frozen_primary_costs_at_most_fifteen_seconds() -> None:
    with PostgresServer() as first, PostgresServer() as second:
        (host,), (other,) = ([url.partition("@")[2].partition("/")[0]] for url in (first.url, second.url))
        ledger = PostgresLedger(f"postgresql://quire@{host},{other}/postgres")
        for server in (first, second):
            alone = PostgresLedger(server.url)
            await alone.open()
            await alone.keep(Setting("a", f'"{server.url}"', 0))
            await alone.close()
        await ledger.open()
        assert first._directory is not None
        postmaster = int((first._directory / "data" / "postmaster.pid").read_text().split()[0])
        frozen = [postmaster, *backends(first.url)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            begun = SYSTEM.boottime()
            found = None
            while found is None:
                try:
                    found = await ledger.setting("a")
                except LedgerUnavailable:
                    await asyncio.sleep(0)  # noqa: TID251 - the next try
            took = SYSTEM.boottime() - begun
            assert found.value == f'"{second.url}"' and took < 16, f"it took {took:.1f} s"
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            await ledger.close()
