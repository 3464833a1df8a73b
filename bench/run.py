"""Measures Quire beside its peers: ``python bench/run.py --help``."""

from __future__ import annotations

import argparse
import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import idle
import machine
import plan
import report
import roster
import servers
import venvs
import workloads
from noise import Watch
from process import NotOffered, PeerFailed
from session import Session, say

BENCH = Path(__file__).resolve().parent


def main() -> None:
    options = arguments()
    # As for Ctrl-C: everything that was started is ended, and what was measured is written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.render:
        results = json.loads(Path(options.render).read_text())
        report.write(results, options.out or Path(options.render).parent)
        return
    out = options.out or (
        BENCH / ".out" if options.quick or options.peers or options.workloads else BENCH.parent / "docs"
    )
    chosen = plan.choose(options.workloads)
    with Session(options.scratch) as session:
        results = begin(session, options)
        peers = install(roster.choose(options.peers), results)
        try:
            measure_all(session, peers, chosen, options, results, out)
        except KeyboardInterrupt:
            say("interrupted: what was measured so far is written")
        finish(session, results, peers)
    for path in report.write(results, out):
        say(f"wrote {path}")
    print(report.summary(results))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Quire beside its peers, in one run on one machine.")
    parser.add_argument(
        "--peers", type=_words, default=[], help="names, or beginnings of names, with commas; default all"
    )
    parser.add_argument("--workloads", type=_words, default=[], help="W1,W2,...; default all")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, interleaved over the peers (default 5)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: proves that the harness works, says nothing about speed"
    )
    parser.add_argument(
        "--out", type=Path, help="where benchmarks.md and benchmarks/ go; default docs/ for a full run, else bench/.out"
    )
    parser.add_argument(
        "--scratch", type=Path, help="where the stores live; default /var/tmp (a disk, not a memory file system)"
    )
    parser.add_argument("--render", metavar="RESULTS", help="only write table and plots again from this results.json")
    return parser.parse_args()


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def begin(session: Session, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "begun_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "repeat": options.repeat,
        "machine": machine.facts(session.scratch),
        "peers": {},
        "unavailable": {},
        "workloads": {},
        "runs": [],
    }


def install(peers: list[roster.Peer], results: dict[str, Any]) -> list[roster.Peer]:
    """The peers whose environment can be made; the others are recorded with the reason."""
    ready = []
    failed: dict[str, str] = {}
    done: set[str] = set()
    for peer in peers:
        if not peer.script.exists():
            failed[peer.venv] = "its adapter is not written yet"
        elif peer.venv not in done and peer.venv not in failed:
            done.add(peer.venv)
            try:
                say(f"environment: {peer.venv}")
                venvs.ensure(peer.venv)
                if peer.venv in idle.WEIGHED:
                    venvs.ensure(idle.WEIGHED[peer.venv])
            except venvs.CannotInstall as error:
                failed[peer.venv] = str(error)
        if peer.venv in failed:
            results["unavailable"][peer.name] = failed[peer.venv]
            continue
        ready.append(peer)
        results["peers"][peer.name] = {
            "label": peer.label, "store": peer.store, "kind": peer.kind, "note": peer.note,
            "packages": venvs.installed(peer.venv),
        }  # fmt: skip
    return ready


def measure_all(
    session: Session,
    peers: list[roster.Peer],
    chosen: list[plan.Workload],
    options: argparse.Namespace,
    results: dict[str, Any],
    out: Path,
) -> None:
    partial = out / "benchmarks" / "results.json"
    partial.parent.mkdir(parents=True, exist_ok=True)
    given_up: set[tuple[str, str]] = set()
    for repetition in range(options.repeat):
        for workload in chosen:
            if repetition >= workload.repeat:
                continue
            sizes = workload.quick if options.quick else workload.full
            results["workloads"][workload.name] = {"title": workload.title, "sizes": sizes}
            if workload.name == "W7":
                measure_idle(session, peers, workload, sizes, repetition, results)
                continue
            # Interleaved: every peer once per repetition, and each time another one first.
            turn = repetition % max(len(peers), 1)
            for peer in [*peers[turn:], *peers[:turn]]:
                if (peer.name, workload.name) not in given_up:
                    run = measure(session, peer, workload, sized(sizes, peer.sizes.get(workload.name, {})), repetition)
                    results["runs"].append(run)
                    if "figures" not in run:
                        given_up.add((peer.name, workload.name))
            partial.write_text(json.dumps(results, indent=1))


def sized(sizes: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A slow peer's own sizes, where they are smaller."""
    return {**sizes, **{name: min(value, sizes[name]) for name, value in own.items()}}


def measure(
    session: Session, peer: roster.Peer, workload: plan.Workload, sizes: dict[str, Any], repetition: int
) -> dict[str, Any]:
    run: dict[str, Any] = {"peer": peer.name, "workload": workload.name, "repetition": repetition, "sizes": sizes}
    started = time.monotonic()
    with Watch(session.scratch, session.best) as watch:
        try:
            run["figures"] = workloads.run(session, peer, workload, sizes)
        except NotOffered as error:
            run["not_offered"] = str(error)
        except (PeerFailed, servers.CannotStart) as error:
            run["error"] = str(error).replace(str(BENCH.parent), ".").replace(str(session.scratch), "scratch")
            keep_log(session, peer, workload)
    run["noise"] = watch.report()
    run["took"] = round(time.monotonic() - started, 2)
    noisy = f"  NOISY: {'; '.join(run['noise']['noisy'])}" if run["noise"]["noisy"] else ""
    say(f"{repetition + 1} {workload.name:<4} {peer.name:<24} {report.brief(run):<44} {run['took']:7.1f} s{noisy}")
    return run


def keep_log(session: Session, peer: roster.Peer, workload: plan.Workload) -> None:
    """What the peer said before it failed, for whoever looks into it; not part of the results."""
    folder = BENCH / ".out"
    folder.mkdir(exist_ok=True)
    with (folder / "failures.log").open("a") as log:
        log.write(f"=== {workload.name} {peer.name}\n{session.log_tail(peer)}\n")


def measure_idle(
    session: Session,
    peers: list[roster.Peer],
    workload: plan.Workload,
    sizes: dict[str, Any],
    repetition: int,
    results: dict[str, Any],
) -> None:
    with Watch(session.scratch, session.best) as watch:
        figures = idle.measure(session, peers, sizes)
    for name, found in figures.items():
        run = {
            "peer": name, "workload": workload.name, "repetition": repetition, "sizes": sizes, "figures": found,
            "noise": watch.report(),
        }  # fmt: skip
        results["runs"].append(run)
        say(f"{repetition + 1} W7   {name:<24} {report.brief(run)}")


def finish(session: Session, results: dict[str, Any], peers: list[roster.Peer]) -> None:
    if any(peer.store == "postgres" for peer in peers):
        results["machine"]["postgres"] = session.postgres.version
        results["machine"]["postgres_settings"] = session.postgres.settings()
    results["machine"]["best_probe"] = session.best
    results["ended_at"] = datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    main()
