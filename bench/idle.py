"""W7: what a worker costs that has nothing to do. All idle workers stand side by side in one window."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from bench import noise, venvs
from bench.process import NotOffered, PeerFailed, PeerProcess
from bench.roster import Peer
from bench.servers import CannotStart
from bench.session import Place, Session, say
from bench.workloads import Figures

#: The installed size that the issue asks for is that of the core, without the extras that a store needs.
WEIGHED = {"quire": "quire-core"}


def measure(session: Session, peers: list[Peer], sizes: dict[str, Any]) -> dict[str, Figures]:
    """Figures by peer name; a peer without a worker still has its import time and its size."""
    figures: dict[str, Figures] = {peer.name: static(peer) for peer in peers if peer.kind != "raw"}
    with ExitStack() as stack:
        waiting: dict[str, tuple[Peer, Place, PeerProcess]] = {}
        for peer in peers:
            if peer.kind == "raw":
                continue
            try:
                place = stack.enter_context(session.place(peer))
                if peer.store == "postgres":
                    session.postgres.log_statements(place.url)
                process, about = stack.enter_context(session.running(peer, place))
                process.call("idle", 120)
            except NotOffered as error:
                figures[peer.name]["not_offered"] = str(error)
                continue
            except (PeerFailed, CannotStart) as error:
                figures[peer.name]["error"] = str(error)
                continue
            figures[peer.name].update(about)
            waiting[peer.name] = (peer, place, process)
        say(f"W7: {len(waiting)} idle workers, {sizes['settle']} + {sizes['window']} s")
        time.sleep(sizes["settle"])
        before = {name: _reading(session, *entry) for name, entry in waiting.items()}
        begin = time.monotonic()
        time.sleep(sizes["window"])
        minutes = (time.monotonic() - begin) / 60
        for name, (peer, place, process) in waiting.items():
            after = _reading(session, peer, place, process)
            for key in after:
                figures[name][f"{key}_per_minute"] = (after[key] - before[name][key]) / minutes
            figures[name]["resident_mb"] = round(noise.resident_mb(process.pid), 1)
        for name, (peer, place, process) in waiting.items():
            try:
                figures[name]["wake_ms"] = wake(session, peer, place, process, sizes["pokes"])
            except (NotOffered, PeerFailed) as error:
                figures[name]["wake_error"] = str(error)
    return figures


def static(peer: Peer) -> Figures:
    weight = {} if peer.venv in venvs.HERE else venvs.weight(WEIGHED.get(peer.venv, peer.venv))
    return {"import_ms": venvs.import_ms(peer.venv, peer.imports), **weight}


def _reading(session: Session, peer: Peer, place: Place, process: PeerProcess) -> dict[str, float]:
    reading = {"cpu_seconds": noise.tree_seconds(process.pid)}
    if peer.store == "postgres":
        statements = session.postgres.statements(place.url)
        if statements is not None:
            reading["statements"] = statements
        reading["transactions"] = session.postgres.transactions(place.url)
    return reading


def wake(session: Session, peer: Peer, place: Place, worker: PeerProcess, pokes: int) -> list[float]:
    """From a start in another process to the body's run in the idle worker, both on the system's monotonic clock."""
    latencies = []
    client = session.spawn(peer)
    try:
        client.call("setup", 120, url=place.url, directory=str(place.directory))
        for count in range(1, pokes + 1):
            time.sleep(0.5)
            begin = client.call("poke", 60)["at"]
            deadline = time.monotonic() + 30
            while len(at := worker.call("woken", 60)["at"]) < count:
                if time.monotonic() > deadline:
                    raise PeerFailed("the idle worker did not run the record within 30 s")
                time.sleep(0.05)
            latencies.append((at[count - 1] - begin) * 1000)
    finally:
        client.kill()
    return latencies[1:] if len(latencies) > 1 else latencies
