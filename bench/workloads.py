"""Drives one workload on one peer and returns the raw figures. Every measurement has a process and a store of its
own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench import noise
from bench.plan import Workload
from bench.process import NotOffered, PeerFailed, PeerProcess
from bench.roster import Peer
from bench.session import Session, say

Figures = dict[str, Any]


def run(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    driver = DRIVERS.get(workload.name, one_call)
    return driver(session, peer, workload, sizes)


def one_call(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """A warm-up that is thrown away, then the measured call, in one process."""
    call = workload.name.lower()
    with session.place(peer) as place, session.running(peer, place) as (process, about):
        if workload.warm:
            process.call(call, workload.timeout, **smaller(workload.warm, sizes))
        before = noise.calm(session.best, session.patience)
        with Spent(process) as spent:
            found = process.call(call, workload.timeout, **sizes)
        spin_ms = max(before, noise.spin())
        # Behind SQLite there is no server: what the others' one does meanwhile is none of this peer's.
        cpu = {**spent.seconds, "server": 0.0} if peer.store == "sqlite" else spent.seconds
        return {**found, "cpu": cpu, "spin_ms": spin_ms, **about}


class Spent:
    """CPU seconds of the peer's own processes, and of the server behind it, while something is measured."""

    def __init__(self, *processes: PeerProcess) -> None:
        self._processes = processes

    def _reading(self) -> tuple[float, float]:
        own = sum(noise.tree_seconds(process.pid) for process in self._processes)
        return own, noise.tree_seconds(os.getpid()) - noise.own_seconds(os.getpid()) - own

    def __enter__(self) -> Spent:
        self._before = self._reading()
        return self

    def __exit__(self, *exc: object) -> None:
        after = self._reading()
        # What the tree of the harness uses beside itself and the peer is the server.
        own, server = (max(0.0, later - earlier) for later, earlier in zip(after, self._before, strict=True))
        self.seconds = {"own": round(own, 2), "server": round(server, 2)}


def profiled(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """The same call under a profiler that also sees the threads of the store."""
    call = workload.name.lower()
    with session.place(peer) as place:
        process = session.spawn(peer)
        try:
            process.call("profiling", 60)
            process.call("setup", 120, url=place.url, directory=str(place.directory))
            process.call(call, workload.timeout, **smaller(workload.warm, sizes))
            with Spent(process) as spent:
                found = process.call("profile", workload.timeout, workload=call, **sizes)
            return {**found, "cpu": spent.seconds}
        finally:
            process.stop()


def smaller(warm: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    return {name: min(value, sizes[name]) for name, value in warm.items()}


def filled(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """W6: drains of a filled ledger, in turn with the same on an empty one beside it: both see the same machine."""
    points = []
    with session.place(peer) as place, session.running(peer, place) as (process, about):
        process.call("w1", workload.timeout, n=sizes["n"])  # what is copied must have run
        for fill in sizes["fills"]:
            begin = time.monotonic()
            answer = process.call("fill", workload.timeout, n=fill)
            if not fill * 0.99 <= answer["filled"] <= fill * 1.1 + 5000:
                raise PeerFailed(f"fill: {answer['filled']} finished records, {fill} asked for")
            fill_seconds = round(time.monotonic() - begin, 1)
            drains: dict[PeerProcess, list[Figures]]
            # Not the process that has filled it: what a gigabyte of cache leaves behind in one is none of the ledger's.
            with (
                session.place(peer) as empty,
                session.running(peer, place) as (inside, _),
                session.running(peer, empty) as (beside, _),
            ):
                drains = {inside: [], beside: []}
                for one in drains:
                    one.call("w1", workload.timeout, **workload.warm)
                for turn in range(2 * sizes["drains"]):
                    one = [inside, beside][(turn + turn // 2) % 2]
                    drains[one].append(one.call("w1", workload.timeout, n=sizes["n"]))
            point = {"finished": fill, "drains": drains[inside], "beside": drains[beside]}
            points.append({**point, "fill_seconds": fill_seconds})
            say(f"W6   {peer.name}: {fill:,} finished records, loaded in {fill_seconds:.0f} s")
        return {"points": points, **about}


class _Site(BaseHTTPRequestHandler):
    """A service that takes its time."""

    protocol_version = "HTTP/1.1"
    seconds = 0.0

    def do_GET(self) -> None:
        time.sleep(self.seconds)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def by_default(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """W0: the service that the steps call runs in this process, so that its work is none of the peer's."""
    handler = type("Site", (_Site,), {"seconds": sizes["call_seconds"]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        with session.place(peer) as place, session.running(peer, place) as (process, about):
            process.call("w0", workload.timeout, n=workload.warm["n"], alone=0, site=site)
            found = process.call("w0", workload.timeout, n=sizes["n"], alone=sizes["alone"], site=site)
            return {**found, **about}
    finally:
        server.shutdown()
        server.server_close()


def killed(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """W8 and W12: SIGKILL when half of the steps have run; the clock runs from the start of the next process."""
    total = sizes["records"] * sizes["steps"]
    with session.place(peer) as place:
        path = place.directory / "journal"
        path.touch()
        process = session.spawn(peer)
        try:
            about = process.call("setup", 120, url=place.url, directory=str(place.directory))
            process.send("crash", path=str(path), **sizes)
            wait_for_lines(process, path, total // 2, workload.timeout)
        finally:
            process.kill()
        before = len(path.read_text().splitlines())
        if before >= total:
            raise PeerFailed(f"all {total} steps had run before the kill")
        begin = time.monotonic()
        process = session.spawn(peer)
        try:
            process.call("setup", 120, url=place.url, directory=str(place.directory))
            failure = ""
            try:
                process.call("resume", workload.timeout, path=str(path), **sizes)
            except PeerFailed as error:
                failure = str(error)
            seconds = time.monotonic() - begin
        finally:
            process.stop()
        lines = path.read_text().splitlines()
        return {
            "seconds": seconds,
            "steps_before_kill": before,
            "duplicates": len(lines) - len(set(lines)),
            "lost": total - len(set(lines)),
            **({"failure": failure} if failure else {}),
            **about,
        }


def wait_for_lines(process: PeerProcess, path: Path, count: int, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while path.read_bytes().count(b"\n") < count:
        if time.monotonic() > deadline:
            raise PeerFailed(f"fewer than {count} steps ran in {timeout:g} s")
        refused = process.refusal()
        if refused is not None:
            raise refused
        time.sleep(0.002)


def many_processes(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """W9: one client starts the records, then 1, 2 and 4 worker processes are let loose on them.

    Quire's once more as they are by default: what they have at once here is made for steps that do nothing. And all
    once more with steps that use the processor, which is what people start more processes for; Quire's by default.
    """
    if peer.store != "postgres":
        raise NotOffered("measured on PostgreSQL only")
    points = []
    about: dict[str, object] = {}
    ends = [count for count in sizes["processes"] if count in (1, 4)]
    turns = [(count, sizes["n"], "") for count in sizes["processes"]]
    if peer.kind == "quire":
        turns += [(count, sizes["n"], "default") for count in ends]
    turns += [(count, sizes["labours"], "labour") for count in ends]
    for count, n, how in turns:
        by_default = peer.kind == "quire" and bool(how)
        with session.place(peer) as place:
            processes = [session.spawn(peer) for _ in range(count + 1)]
            try:
                for process in processes:
                    about = process.call("setup", 120, url=place.url, directory=str(place.directory))
                client, *workers = processes
                client.call("enqueue", workload.timeout, n=n)
                if how == "labour":
                    for worker in workers:
                        worker.call("labour", 60, seconds=sizes["labour_seconds"])
                for worker in workers:
                    worker.send("work", **({"by_default": True} if by_default else {}))
                with Spent(*workers) as spent:
                    begin = min(worker.receive("work", 60)["at"] for worker in workers)
                    end = client.call("drained", workload.timeout, n=n)["at"]
            finally:
                for process in processes:
                    process.kill()
            point = {"processes": count, "n": n, "seconds": end - begin, "cpu": spent.seconds, "how": how}
            points.append({**point, "processors": len(os.sched_getaffinity(0))})
    return {"points": points, **about}


def transcripts(session: Session, peer: Peer, workload: Workload, sizes: dict[str, Any]) -> Figures:
    """W10: bytes stored by transcripts of growing length, each in a store of its own."""
    points = []
    about: dict[str, object] = {}
    for turns in sizes["turns"]:
        with session.place(peer) as place, session.running(peer, place) as (process, said):
            about = said
            answer = process.call("w10", workload.timeout, turns=turns, turn_bytes=sizes["turn_bytes"])
            points.append({"turns": turns, "payload": turns * sizes["turn_bytes"], **answer})
    return {"points": points, **about}


DRIVERS: dict[str, Callable[[Session, Peer, Workload, dict[str, Any]], Figures]] = {
    "W0": by_default,
    "W12": killed,
    "W6": filled,
    "W8": killed,
    "W9": many_processes,
    "W10": transcripts,
}
