"""Tick chains: slots, batons, generations; a chain neither multiplies nor dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from quire.errors import InputError
from quire.ledger.engine import shared_keyring
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock
from quire.upkeep import ticks as relay
from tests.surfaces.cli.conftest import Project


async def test_a_slot_is_taken_once_until_it_expires() -> None:
    clock = ToldClock()
    ledger = MemoryLedger(clock)

    first = await relay.take(ledger, 1, 60.0)
    assert first is not None
    assert await relay.take(ledger, 1, 60.0) is None
    assert await relay.take(ledger, 2, 60.0) is not None

    clock.advance(61)
    again = await relay.take(ledger, 1, 60.0)
    assert again is not None and again.generation == first.generation + 1


async def test_a_baton_is_good_once_and_an_older_one_does_nothing() -> None:
    ledger = MemoryLedger(ToldClock())
    keyring = await shared_keyring(ledger)
    slot = await relay.take(ledger, 1, 60.0)
    assert slot is not None

    following = await relay.hand_on(ledger, slot)
    assert following is not None
    baton = relay.Baton.parse(str(relay.signed(keyring, following.number, following.generation)))

    assert relay.genuine(keyring, baton)
    assert not relay.genuine(keyring, baton._replace(generation=99))
    mine = await relay.accept(ledger, baton, 60.0)
    assert mine is not None
    assert await relay.accept(ledger, baton, 60.0) is None  # delivered twice
    assert await relay.hand_on(ledger, slot) is None  # the old holder has lost it
    await relay.release(ledger, slot)
    assert await relay.take(ledger, 1, 60.0) is None
    await relay.release(ledger, mine)
    assert await relay.take(ledger, 1, 60.0) is not None


@pytest.mark.parametrize("text", ["", "1", "1.2", "a.b.c", "1.2.", "1.2.x y", "-1.2.ab", "1" * 30 + ".2.ab", "١.2.ab"])
def test_what_is_no_baton(text: str) -> None:
    with pytest.raises(InputError, match="not a baton"):
        relay.Baton.parse(text)


class _Calls(BaseHTTPRequestHandler):
    batons: list[str]

    def do_POST(self) -> None:
        self.batons.append(str(self.headers["X-Quire-Baton"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def calls() -> Iterator[tuple[str, list[str]]]:
    """An address that keeps the batons it is called with."""
    batons: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Calls", (_Calls,), {"batons": batons}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/tick", batons
    server.shutdown()
    thread.join()
    server.server_close()


#: Each step yields its place to another record: a slice that is too short for all of them leaves some behind.
SLOW = """
from quire import Run, workflow
from quire.clock import SYSTEM

@workflow(cap=1)
async def slow(run: Run) -> int:
    await SYSTEM.sleep(0.35)
    return 1
"""


@pytest.fixture
def slow(empty: Project) -> Project:
    empty.write("flows.py", SLOW)
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\n')
    empty.work()
    return empty


def test_a_slice_that_leaves_work_behind_calls_the_next(slow: Project, calls: tuple[str, list[str]]) -> None:
    url, batons = calls
    for number in range(5):
        slow.quire("start", "slow", "--id", f"r{number}")

    told = slow.json("tick", "--budget", "1s", "--call", url)[-1]
    assert told["ran"] and told["left"] and told["called"]
    assert slow.json("tick", "--budget", "1s")[-1] == {"ran": False, "reason": "every chain is alive"}

    slices = 1
    while len(batons) == slices and slices < 12:
        slow.quire("tick", "--budget", "1s", "--call", url, "--baton", batons[-1])
        slices += 1

    assert {row["status"] for row in slow.json("list")} == {"DONE"}
    assert 2 <= slices < 12
    assert slow.json("tick", "--budget", "1s", "--baton", batons[0])[-1]["reason"] == "the baton is old"
    assert slow.json("tick", "--budget", "1s")[-1]["ran"] is True  # the chain has ended: cron may begin another


def test_a_slice_with_nothing_to_do_ends_and_says_when_there_is(slow: Project) -> None:
    slow.quire("start", "slow", "--after", "1h")

    told = slow.json("tick", "--call", "http://127.0.0.1:1/nobody")[-1]

    assert (told["settled"], told["left"]) == (0, False)
    assert told["next_due_at"].endswith("Z")


def test_a_paused_ledger_makes_no_chain(slow: Project, calls: tuple[str, list[str]]) -> None:
    url, batons = calls
    slow.quire("start", "slow")
    slow.quire("pause")

    told = slow.json("tick", "--budget", "1s", "--call", url)[-1]

    assert (told["left"], batons) == (False, [])


def test_a_call_that_is_lost_is_told_and_no_loss(slow: Project) -> None:
    for number in range(4):
        slow.quire("start", "slow", "--id", f"r{number}")

    told = slow.quire("tick", "--budget", "1s", "--call", "http://127.0.0.1:1/nobody").stdout

    assert "work is left, the call failed" in told


def test_a_forged_baton_is_refused(slow: Project) -> None:
    before = slow.contents()

    assert "was not signed by this ledger" in slow.error("tick", "--baton", "0.1." + "a" * 40, code=2)
    assert "is not a baton" in slow.error("tick", "--baton", "nonsense", code=2)
    assert "takes an http address" in slow.error("tick", "--call", "file:///etc/passwd", code=2)
    for words in (("--budget", "0s"), ("--budget", "x"), ("--chains", "0"), ("--chains", "65"), ("--period", "0s")):
        slow.quire("tick", *words, code=2)

    assert slow.contents() == before


#: A step that waits for a file that is never there: it takes longer than any slice.
ENDLESS = """
import asyncio

from quire import Run, workflow

@workflow
async def endless(run: Run) -> None:
    await asyncio.Event().wait()

@workflow
async def quick(run: Run) -> int:
    return 1
"""


def test_a_step_that_no_slice_can_end_is_named_at_once_counted_and_not_begun_again(empty: Project) -> None:
    empty.write("flows.py", ENDLESS)
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\n')
    empty.work()
    empty.quire("start", "endless", "--id", "long")

    for _ in range(20):  # on a busy machine a slice may begin the step late, and so not know yet that it is too long
        first = empty.quire("tick", "--budget", "1s")
        if "too short for it" in first.stderr:
            break
    version = empty.record("long").version
    empty.quire("start", "quick", "--id", "short")
    second = empty.quire("tick", "--budget", "1s")
    [told] = empty.json("tick", "--budget", "1s")
    [why] = empty.json("why", "long")
    doctor = empty.quire("doctor", code=None).stdout
    stuck = empty.quire("list", "--stuck").stdout

    for said in (first.stderr, first.stdout, second.stdout, why["why"], doctor):
        assert "did not end (a slice ended under it" in said and "--budget 2s" in said
    assert empty.record("long").version == version, "no slice of this length begins it again"
    assert empty.record("short").status == "DONE", "and others are not held up by it"
    assert [(step["step"], step["budget"]) for step in told["too_long"]] == [("endless", "2s")]
    assert told["too_long"][0]["cut"] >= 1
    assert why["kind"] == "too long"
    assert "no worker is alive" not in doctor + stuck + why["why"]


def test_a_plain_step_that_outlasts_its_slice_has_ended_when_it_returns(empty: Project) -> None:
    empty.write(
        "flows.py",
        "import threading\n\nfrom quire import SyncRun, workflow\n\n"
        "@workflow\ndef plain(run: SyncRun) -> int:\n    threading.Event().wait(0.8)\n    return 7\n",
    )
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\n')
    empty.work()
    empty.quire("start", "plain", "--id", "p")

    empty.quire("tick", "--budget", "1s")

    assert empty.record("p").result == "7"
