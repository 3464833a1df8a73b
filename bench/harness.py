"""One run: the order of its measurements, what it keeps of them, and its options."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import idle, machine, plan, report, roster, venvs, workloads
from bench.noise import PATIENCE, Watch, settle
from bench.process import NotOffered
from bench.session import Session, say

BENCH = Path(__file__).resolve().parent
#: A measurement that was disturbed is made again at most so often.
AGAIN = 2


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    if options.render:
        report.write(json.loads(options.render.read_text()), options.out or home(options.render))
        return
    out = options.out or where_to(options)
    venvs.HERE.update(("quire", "raw") if options.here else ())
    # As for Ctrl-C: everything that was started is ended, and what was measured is written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = plan.choose(options.workloads)
    with Session(options.scratch) as session:
        results = resumed(options) if options.resume else begin(session, options)
        peers = install(roster.choose(options.peers), results, options)
        try:
            Run(session, peers, chosen, options, results, out).measure_all()
        except KeyboardInterrupt:
            say("interrupted: what was measured so far is written")
        finish(session, results, peers)
    for path in report.write(results, out):
        say(f"wrote {path}")
    print(report.summary(results))


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Quire beside its peers, in one run on one machine.")
    parser.add_argument(
        "--peers", type=_words, default=[], help="names, or beginnings of names, with commas; default all"
    )
    parser.add_argument("--workloads", type=_words, default=[], help="W1,W2,...; default all")
    parser.add_argument(
        "--repeat", type=int, default=plan.REPEAT, help=f"repetitions at the most (default {plan.REPEAT})"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="begin nothing that would end later; all is measured once first, then repeated as long as there is time",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: proves that the harness works, says nothing about speed"
    )
    parser.add_argument(
        "--out", type=Path, help="where benchmarks.md and benchmarks/ go; default docs/ for a full run, else bench/.out"
    )
    parser.add_argument(
        "--scratch", type=Path, help="where the stores live; default /var/tmp (a disk, not a memory file system)"
    )
    parser.add_argument(
        "--here",
        action="store_true",
        help="run Quire and the raw limit in this interpreter's environment, as it is, instead of making one",
    )
    parser.add_argument(
        "--resume", metavar="RESULTS", type=Path, help="go on with the run that wrote this results.json"
    )
    parser.add_argument(
        "--render", metavar="RESULTS", type=Path, help="only write table and plots again from this results.json"
    )
    return parser.parse_args(given)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def where_to(options: argparse.Namespace) -> Path:
    if options.resume:
        return home(options.resume)
    partly = options.quick or options.peers or options.workloads
    return BENCH / ".out" if partly else BENCH.parent / "docs"


def home(raw: Path) -> Path:
    """Where the page lies whose raw figures these are."""
    folder = raw.resolve().parent
    return folder.parent if folder.name == "benchmarks" else folder


def begin(session: Session, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "begun_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "repeat": options.repeat,
        "minutes": options.minutes,
        "machine": machine.facts(session.scratch),
        "peers": {},
        "unavailable": {},
        "workloads": {},
        "runs": [],
        "profiles": [],
    }


def resumed(options: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(options.resume.read_text())
    if results["quick"] != options.quick:
        raise SystemExit("a quick run and a full one cannot be mixed: resume it with the same --quick as it began")
    results.setdefault("resumed_at", []).append(datetime.now(UTC).isoformat(timespec="seconds"))
    return results


def install(peers: list[roster.Peer], results: dict[str, Any], options: argparse.Namespace) -> list[roster.Peer]:
    """The peers whose environment can be made; the others are recorded with the reason."""
    ready = []
    failed: dict[str, str] = {}
    finished: set[str] = set()
    for peer in peers:
        if peer.venv not in finished and peer.venv not in failed:
            finished.add(peer.venv)
            try:
                say(f"environment: {peer.venv}")
                venvs.ensure(peer.venv)
                if peer.venv in idle.WEIGHED and not options.here:
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
    # In the order of the roster, also when a run is resumed with other peers.
    order = [peer.name for peer in roster.ROSTER if peer.name in results["peers"]]
    results["peers"] = {name: results["peers"][name] for name in order}
    return ready


class Run:
    """Makes the measurements of one run in their order, and keeps what it has on disk at every moment."""

    def __init__(
        self,
        session: Session,
        peers: list[roster.Peer],
        chosen: list[plan.Workload],
        options: argparse.Namespace,
        results: dict[str, Any],
        out: Path,
    ) -> None:
        self.session, self.peers, self.options, self.results = session, peers, options, results
        self.raw = out / "benchmarks" / "results.json"
        self.raw.parent.mkdir(parents=True, exist_ok=True)
        self.turns = plan.turns(chosen, peers, options.repeat)
        for workload in chosen:
            sizes = plan.sized(workload, None, quick=options.quick)
            results["workloads"][workload.name] = {
                "title": workload.title,
                "sizes": sizes,
                "left_out": workload.left_out,
            }
        order = [workload.name for workload in plan.WORKLOADS if workload.name in results["workloads"]]
        results["workloads"] = {name: results["workloads"][name] for name in order}
        session.best.update(results["machine"].get("best_probe", {}))
        took = {
            (run["workload"], "" if plan.known(run["workload"]).together else run["peer"]): run["took"]
            for run in results["runs"]
        }
        self.budget = plan.Budget(options.minutes, took)
        # A quick run says nothing about speed, so it need not wait until the machine is quiet.
        session.patience = 0.0 if options.quick else PATIENCE

    def measure_all(self) -> None:
        if any(peer.store == "postgres" for peer in self.peers):
            _ = self.session.postgres
        for _ in range(5):  # what is quiet is told by the best probe, so the first measurement needs one, too
            settle(self.session.scratch, self.session.best, self.session.patience / 5)
        todo = [turn for turn in self.turns if not plan.done(turn, self.results["runs"])]
        while todo:
            turn = todo.pop(0)
            if plan.done(turn, self.results["runs"]):
                continue  # it has just said that it cannot
            if not self.budget.allows(turn):
                say(f"no time left for {turn.workload.name} {turn.peer.name if turn.peer else ''}".rstrip())
                continue
            self.take(turn, todo)
            if todo and todo[0].repetition > turn.repetition == 0:
                self.profile()
        self.profile()
        for _ in range(0 if self.options.quick else AGAIN):
            again = plan.disturbed(self.turns, self.results["runs"])
            if again:
                say(f"{len(again)} measurements were disturbed, and are made again as long as there is time")
            while again:
                turn = again.pop(0)
                if self.budget.allows(turn):
                    self.take(turn, again)

    def take(self, turn: plan.Turn, todo: list[plan.Turn]) -> None:
        started = time.monotonic()
        sizes = plan.sized(turn.workload, turn.peer, quick=self.options.quick)
        if turn.peer is None:
            self.measure_idle(turn, sizes)
        else:
            self.measure(turn, turn.peer, sizes)
        self.budget.learn(turn, time.monotonic() - started)
        self.keep()
        say(self.budget.told(todo))

    def keep(self) -> None:
        """The file is whole at every moment: a run that is killed can be rendered, and resumed."""
        self.results["machine"]["best_probe"] = self.session.best
        beside = self.raw.with_suffix(".part")
        beside.write_text(json.dumps(self.results, indent=1) + "\n")
        os.replace(beside, self.raw)

    def measure(self, turn: plan.Turn, peer: roster.Peer, sizes: dict[str, Any]) -> None:
        workload, repetition = turn.workload, turn.repetition
        run: dict[str, Any] = {"peer": peer.name, "workload": workload.name, "repetition": repetition, "sizes": sizes}
        started = time.monotonic()
        with Watch(self.session.scratch, self.session.best, self.session.patience) as watch:
            try:
                run["figures"] = workloads.run(self.session, peer, workload, sizes)
            except NotOffered as error:
                run["not_offered"] = str(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, it ends this measurement and not the run
                run["error"] = self.told(error)
                self.keep_log(peer, workload)
        watch.felt(run.get("figures", {}).pop("spin_ms", 0.0))
        run["noise"] = watch.report()
        run["took"] = round(time.monotonic() - started, 2)
        self.results["runs"].append(run)
        noisy = f"  NOISY: {'; '.join(run['noise']['noisy'])}" if run["noise"]["noisy"] else ""
        say(f"{repetition + 1} {workload.name:<4} {peer.name:<24} {report.brief(run):<44} {run['took']:7.1f} s{noisy}")

    def told(self, error: Exception) -> str:
        """What went wrong, without the paths of this machine."""
        text = str(error) or type(error).__name__
        return text.replace(str(BENCH.parent), ".").replace(str(self.session.scratch), "scratch")

    def keep_log(self, peer: roster.Peer, workload: plan.Workload) -> None:
        """What the peer said before it failed, for whoever looks into it; not part of the results."""
        folder = BENCH / ".out"
        folder.mkdir(exist_ok=True)
        with (folder / "failures.log").open("a") as log:
            log.write(f"=== {workload.name} {peer.name}\n{self.session.log_tail(peer)}\n")

    def measure_idle(self, turn: plan.Turn, sizes: dict[str, Any]) -> None:
        started = time.monotonic()
        with Watch(self.session.scratch, self.session.best, self.session.patience) as watch:
            figures = idle.measure(self.session, self.peers, sizes)
        took = round(time.monotonic() - started, 2)
        for name, found in figures.items():
            run = {
                "peer": name, "workload": turn.workload.name, "repetition": turn.repetition, "sizes": sizes,
                "figures": found, "noise": watch.report(), "took": took,
            }  # fmt: skip
            self.results["runs"].append(run)
            say(f"{turn.repetition + 1} W7   {name:<24} {report.brief(run)}")

    def profile(self) -> None:
        """Where Quire's own time goes; under the profiler, so apart from the measurements."""
        made = {(found["peer"], found["workload"]) for found in self.results["profiles"]}
        for peer in self.peers:
            for name in ("W1", "W2"):
                if peer.kind != "quire" or (peer.name, name) in made or name not in self.results["workloads"]:
                    continue
                workload = plan.known(name)
                sizes = plan.sized(workload, peer, quick=self.options.quick)
                try:
                    found = workloads.profiled(self.session, peer, workload, sizes)
                except Exception as error:  # noqa: BLE001 - as above
                    say(f"  profile of {name} {peer.name}: FAILED: {error}")
                    continue
                self.results["profiles"].append({"peer": peer.name, "workload": name, **found})
                say(f"  profile of {name} {peer.name}: {found['seconds']:.2f} s under the profiler")
        self.keep()


def finish(session: Session, results: dict[str, Any], peers: list[roster.Peer]) -> None:
    if any(peer.store == "postgres" for peer in peers):
        results["machine"]["postgres"] = session.postgres.version
        results["machine"]["postgres_settings"] = session.postgres.settings()
    results["machine"]["best_probe"] = session.best
    results["ended_at"] = datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    main()
