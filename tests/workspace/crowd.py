"""Onboardings by real processes that are killed: one at a chosen moment, or many at random.

``python -m tests.workspace.crowd --records 500 --workers 10`` does it at full scale and
says what there is in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hectograph import Emulator
from quire import Retry, Run, Workflow
from quire.client.client import Client
from quire.model.record import Status
from quire.workflows.effect import _DECLARED
from quire.workspace import calendar, connected, docs, drive, gmail
from quire.workspace.scopes import name_of
from tests.workspace.worlds import ME, START, World

onboard: Workflow[dict[str, Any], Any, None] = Workflow("onboard", retry=Retry(50, first="0.2s", most="2s"))


@onboard.step
async def work(run: Run[dict[str, Any]]) -> dict[str, str]:
    given, name = run.data, run.record_id
    client = f"{name}@example.com"
    folder = await run.once(drive.folder, name, given["clients"])
    contract = await run.once(drive.copy, given["template"], f"Contract {name}", folder)
    await run.once(docs.fill, contract, {"company": name, "fee": "1,200 €"})
    sent = await run.once(gmail.send, client, f"Contract {name}", "Please sign.")
    met = await run.once(calendar.event, f"Kick-off {name}", START, invite=[client])
    return {"folder": folder.id, "contract": contract.id, "mail": sent.id, "event": met.id}


def hurried(timeout: str = "4s", settle: str = "1s") -> None:
    """Let acts end sooner than usual, and their targets show them sooner: a test has no minutes to wait."""
    for effect in _DECLARED.values():
        if name_of(effect):
            object.__setattr__(effect, "timeout", timeout)
            object.__setattr__(effect, "settle", settle)


async def _worker(ledger: str, google: str, until: str, concurrency: int) -> None:
    hurried()
    async with connected(google, user=ME), Client(ledger, workflows=[onboard], who="worker") as client:
        await client.work(until=until or None, forever=not until, concurrency=concurrency, lease="6s")


def begun(ledger: str, google: str, until: str = "", concurrency: int = 8) -> subprocess.Popen[bytes]:
    """A worker in a process of its own."""
    words = [sys.executable, "-m", "tests.workspace.crowd", "--work", ledger, "--google", google]
    words += ["--until", until, "--concurrency", str(concurrency)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "packages/hectograph/src", "."])}
    quiet = subprocess.DEVNULL if not os.environ.get("CROWD_SHOWS") else None
    return subprocess.Popen(words, env=env, cwd=Path(__file__).parents[2], stderr=quiet)


def killed(process: subprocess.Popen[bytes]) -> None:
    """End a worker as a power cut would."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def counted(world: World) -> dict[str, Any]:
    """How many there are of each thing, and how many of them are twice."""
    folders = Counter(file["name"] for file in world.everything(world.clients))
    contracts: Counter[str] = Counter()
    for file in world.everything(""):
        if str(file["name"]).startswith("Contract ") and file["id"] != world.template:
            contracts[file["name"]] += 1
    mails = Counter(one["summary"] for one in world.left("mail"))
    invitations = Counter(one["summary"] for one in world.left("invitation"))
    events = Counter(one["summary"] for one in world.all_events())
    kinds = {"folders": folders, "contracts": contracts, "mails": mails, "events": events, "invitations": invitations}
    twice = {kind: {name: n for name, n in found.items() if n > 1} for kind, found in kinds.items()}
    return {**{kind: len(found) for kind, found in kinds.items()}, "twice": {k: v for k, v in twice.items() if v}}


async def _crowd(records: int, workers: int, ledger: str, every: float, seed: int, lost: float) -> dict[str, Any]:
    chance, begin = random.Random(seed), time.monotonic()
    with Emulator(account=ME) as emulator:
        world = World(emulator)
        if lost:
            fault = {"fault": "lost_answer", "write": True, "probability": lost, "count": None, "seed": seed}
            world("POST", "/emulator/faults", {**fault, "kind": "drive|docs|gmail|calendar"})
        async with Client(ledger, workflows=[onboard], who="ann") as client:
            for number in range(records):
                await client.start("onboard", world.data, id=f"c{number}")
            running = [begun(ledger, emulator.url) for _ in range(workers)]
            kills = 0
            try:
                while True:
                    # The first kill comes as soon as anything runs: a fast machine may be done before the second.
                    await client.clock.sleep(every * chance.uniform(0.5, 1.5) if kills else 0.1)
                    counts = Counter(str(one.status) for one in await client.find(workflow="onboard", limit=100_000))
                    left = records - counts["DONE"] - counts["ERROR"] - counts["NEEDS_APPROVAL"]
                    sys.stdout.write(f"{time.monotonic() - begin:6.0f} s  {dict(counts)}  {kills} kills\n")
                    if not left:
                        break
                    if not kills and not counts["RUNNING"]:
                        continue
                    victim = chance.randrange(workers)
                    killed(running[victim])
                    kills += 1
                    running[victim] = begun(ledger, emulator.url)
            finally:
                for process in running:
                    killed(process)
            found = await client.find(workflow="onboard", limit=100_000)
            asked = [one.record_id for one in found if one.status is Status.NEEDS_APPROVAL]
            failed = [(one.record_id, one.last_error) for one in found if one.status is Status.ERROR]
        return {
            **counted(world),
            "kills": kills,
            "questions": len(asked),
            "asked": asked[:5],
            "failed": failed[:5],
            "seconds": round(time.monotonic() - begin),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default="")
    parser.add_argument("--google", default="")
    parser.add_argument("--until", default="")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--records", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--ledger", default="")
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--lost", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.work:
        asyncio.run(_worker(given.work, given.google, given.until, given.concurrency))
        return
    with tempfile.TemporaryDirectory() as folder:
        ledger = given.ledger or f"sqlite:///{folder}/ledger.db"
        found = asyncio.run(_crowd(given.records, given.workers, ledger, given.every, given.seed, given.lost))
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
