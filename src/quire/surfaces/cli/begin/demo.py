"""``quire demo``: a worker is really killed (SIGKILL) half-way, a new one goes on, and the posts are counted.

Everything is what a user would do: a directory with ``quire.toml`` and ``flows.py``, ``quire worker`` as a process of
its own, records in the embedded ledger, a person who answers. The directory stays, to be looked at.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import InputError, NotFound, QuireError
from quire.ledger import engine
from quire.model.receipt import Keyring, Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.surfaces.cli.command import Exit, Session

_TOML = """flows = ["flows.py"]
ledger = "sqlite:///ledger.db"

[groups]
editors = ["ann@x.eu"]
"""

_KEYWORDS = (
    "quires", "ledgers", "receipts", "two-phase commits", "old choirs", "paper sizes", "leases", "clocks",
    "idempotence", "spreadsheets", "carbon copies", "sagas", "queues", "fences", "journals", "folios",
)  # fmt: skip

_STEPS = ("draft", "review", "post", "archive", "")
#: The demo gives up after this long.
_LIMIT_SECONDS = 90.0


def run_demo(session: Session, directory: str | None, articles: int) -> int:
    """Run it and answer the exit code."""
    folder = demo_folder(directory)
    demo = Demo(session, folder, articles)
    try:
        return session.run(demo.run())
    finally:
        demo.end()


def demo_folder(directory: str | None) -> Path:
    folder = Path(directory) if directory is not None else Path("quire-demo")
    try:
        if directory is None and folder.exists():
            folder = Path(tempfile.mkdtemp(prefix="quire-demo-"))
        elif folder.exists() and any(folder.iterdir()):
            raise InputError(f"{str(folder)!r} is not empty; the demo wants a directory of its own")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be used: {error}") from error
    return folder.resolve()


class Demo:
    def __init__(self, session: Session, folder: Path, articles: int) -> None:
        self.out = session.out
        self.folder = folder
        self.articles = articles
        self.processes: list[subprocess.Popen[bytes]] = []
        self.answered: set[str] = set()
        self.killed_at = 0.0
        self.picture = _Picture(self.out, articles)

    def _write(self) -> None:
        from quire.surfaces.cli.begin import demo_flows

        source = re.sub(r"  # noqa: TID251 - (.*)", r"  # \1", inspect.getsource(demo_flows))
        (self.folder / "flows.py").write_text(source, encoding="utf-8")
        (self.folder / "quire.toml").write_text(_TOML, encoding="utf-8")

    def _worker(self, label: str) -> subprocess.Popen[bytes]:
        """Return a worker as a process of its own."""
        command = [sys.executable, "-m", "quire.surfaces.cli", "--config", str(self.folder / "quire.toml")]
        command += ["worker", "--lease", "3s", "--label", label]
        mine = (name for name in os.environ if not name.startswith("QUIRE_") or name == engine.KEYRING_FILE)
        environment = {name: os.environ[name] for name in mine}
        with (self.folder / f"{label}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.processes.append(process)
        return process

    def end(self) -> None:
        """No process outlives the demo."""
        self.picture.end()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def posts(self) -> list[dict[str, Any]]:
        site = self.folder / "site.jsonl"
        return [json.loads(line) for line in site.read_text().splitlines()] if site.exists() else []

    async def run(self) -> int:
        self._write()
        began = SYSTEM.boottime()
        self.out.say(f"A directory of its own: {self.folder}", dim=True)
        first = self._worker("first-worker")
        async with Client(f"sqlite:///{self.folder / 'ledger.db'}", who="ann@x.eu") as client:
            try:
                async with asyncio.timeout(_LIMIT_SECONDS):
                    await self._started(client, first)
                    await self._until_half(client, first)
                    await self._kill(client, first)
                    second = self._worker("second-worker")
                    await self._until_done(client, second)
                    second.send_signal(signal.SIGTERM)
                    while second.poll() is None:
                        await SYSTEM.sleep(0.02)
            except TimeoutError:
                raise QuireError(
                    f"the demo did not end in {_LIMIT_SECONDS:g} s; its logs are in {self.folder}"
                ) from None
            return await self._proof(client, SYSTEM.boottime() - began)

    # -- the story -------------------------------------------------------------------------------------------------

    async def _started(self, client: Client, worker: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                await engine.definition(client.ledger, "publish")
                break
            except NotFound:
                self._alive(worker)
                await SYSTEM.sleep(0.02)
        ids = [f"article-{number:02}" for number in range(1, self.articles + 1)]
        data = [{"keyword": _KEYWORDS[place % len(_KEYWORDS)]} for place in range(self.articles)]
        await client.start_many("publish", data, ids=ids)
        self.picture.tell(f"{self.articles} articles started; worker {worker.pid} drafts, ann@x.eu reviews")

    def _alive(self, worker: subprocess.Popen[bytes]) -> None:
        if worker.poll() is not None:
            log = (self.folder / f"{'first' if worker is self.processes[0] else 'second'}-worker.log").read_text()
            last = (log.strip().splitlines() or ["it said nothing"])[-1]
            raise QuireError(f"the demo's worker ended by itself: {last}")

    async def _until_half(self, client: Client, worker: subprocess.Popen[bytes]) -> None:
        while len(self.posts()) < self.articles // 2:
            self._alive(worker)
            await self._look(client)
            await SYSTEM.sleep(0.02)

    async def _kill(self, client: Client, worker: subprocess.Popen[bytes]) -> None:
        os.kill(worker.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        worker.wait()
        self.killed_at = await client.ledger.now()
        running = await client.find(status=Status.RUNNING)
        posted = {post["record_id"] for post in self.posts()}
        doubtful = [record for record in running if record.open_intents and record.record_id in posted]
        self.picture.tell(
            f"kill -9 {worker.pid} half-way: {len(running)} articles were in its hands, "
            f"{len(doubtful)} of them posted without a receipt",
            colour="red",
        )

    async def _until_done(self, client: Client, worker: subprocess.Popen[bytes]) -> None:
        self.picture.tell(f"a new worker, {worker.pid}, takes over")
        while True:
            self._alive(worker)
            if await self._look(client) == self.articles:
                return
            await SYSTEM.sleep(0.02)

    async def _look(self, client: Client) -> int:
        """Show how it stands, and answer one question as a person would. Answers how many are done."""
        asked = await client.find(status=Status.NEEDS_APPROVAL, limit=1)
        for record in asked:
            await self._answer(client, record)
        counts = await client.counts()
        by_step = Counter[str]()
        for count in counts:
            by_step[count.step] += count.count
        done = sum(count.count for count in counts if count.status is Status.DONE)
        self.picture.show(by_step, len(self.posts()))
        return done

    async def _answer(self, client: Client, record: Record) -> None:
        edits = {}
        if len(self.answered) in (1, 4):
            keyword = json.loads(record.data)["keyword"]
            edits = {"draft": f"What nobody tells you about {keyword}."}
        await client.answer(record.record_id, "approve", edits=edits, via="demo", groups={"editors": ["ann@x.eu"]})
        self.answered.add(record.record_id)
        if edits:
            self.picture.tell(f"ann@x.eu rewrites and approves {record.record_id}")

    # -- the proof -------------------------------------------------------------------------------------------------

    async def _proof(self, client: Client, took: float) -> int:
        self.picture.end()
        records = await client.find(workflow="publish", limit=1000)
        posts = self.posts()
        receipts = await client.ledger.receipts(record_ids=[record.record_id for record in records])
        acts = [receipt for receipt in receipts if receipt.kind is Kind.ONCE]
        keyring = client.keyring
        assert keyring is not None
        labels = {worker.worker_id: worker.label for worker in await client.workers()}
        by = Counter(labels.get(receipt.worker, "?").partition("-")[0] for receipt in acts)
        killed = {worker_id for worker_id, label in labels.items() if label == "first-worker"}
        probed = [act for act in acts if act.worker in killed and (act.done_at or 0.0) >= self.killed_at]
        edited = sum(post["text"].startswith("What nobody") for post in posts)
        twice = _twice(post["key"] for post in posts)
        whole = len(records) == len(posts) == len(acts) == self.articles and not twice
        proven = whole and _all_done(records, acts, keyring)
        first = next((act.record_id for act in probed), records[0].record_id)
        say = self.out.say
        say()
        say(f"{len(records)} articles, {len(posts)} posts on the site, {len(twice)} of them twice.", bold=True)
        say(f"  {len(acts)} signed receipts: {by['first']} acts of the killed worker, {by['second']} of the new one;")
        say(f"  {len(probed)} acts had no receipt when their worker died: the new one found them on the site;")
        say(f"  {edited} posts carry the editor's words; it took {took:.1f} s.")
        if self.out.json:
            proof = {"articles": len(records), "posts": len(posts), "twice": len(twice), "receipts": len(acts)}
            self.out.emit(
                {**proof, "found": len(probed), "proven": proven, "folder": str(self.folder), "seconds": took}
            )
        if not proven:
            raise QuireError(f"the proof failed; the ledger is in {self.folder}")
        say("Nothing was lost, nothing was done twice.", colour="green", bold=True)
        say()
        self._what_next(first)
        return Exit.OK

    def _what_next(self, record_id: str) -> None:
        """Print the commands with which the reader goes on."""
        say = self.out.say
        where = self.folder.name if self.folder.parent == Path.cwd() else str(self.folder)
        say("Look at it:")
        if shutil.which("quire") is None and (activate := Path(sys.prefix) / "bin/activate").is_file():
            near = activate.is_relative_to(Path.cwd())
            say(f"  . {activate.relative_to(Path.cwd()) if near else activate}    # gives you the command quire")
        say(f"  cd {where}")
        for command in _commands(record_id):
            say(f"  {command}")


def _twice(keys: Iterable[str]) -> list[str]:
    return [key for key, count in Counter(keys).items() if count > 1]


def _all_done(records: Sequence[Record], acts: Sequence[Receipt], keyring: Keyring) -> bool:
    """Return whether every article is done, and every act has a receipt that the keyring signed."""
    signed = all(act.stage is Stage.DONE and keyring.verifies(act) for act in acts)
    return signed and all(record.status is Status.DONE for record in records)


def _commands(record_id: str) -> Sequence[str]:
    return (
        "quire list",
        f"quire show {record_id:<12}  # its timeline: killed, taken over, found, done",
        f"quire report {record_id}",
        "quire graph",
        "quire verify",
        "cat flows.py            # what ran",
        "quire up                # then, elsewhere: quire start publish keyword=anything",
    )


class _Picture:
    """Where the articles are: bars in place on a terminal, a line now and then elsewhere."""

    def __init__(self, out: Any, total: int) -> None:
        self.out = out
        self.total = total
        self.lines: list[tuple[str, str]] = []
        self._live: Any = None
        self._last = ""
        self._said_at = 0.0
        if out.terminal:
            from rich.live import Live

            self._live = Live(console=out.console, auto_refresh=False, transient=False)
            self._live.__enter__()

    def tell(self, text: str, colour: str = "") -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(f"• {text}", style=f"bold {colour}" if colour else ""))
        else:
            self.out.say(f"• {text}", colour=colour or None)

    def show(self, by_step: Counter[str], posts: int) -> None:
        if self._live is not None:
            self._live.update(self._bars(by_step, posts), refresh=True)
            return
        text = ", ".join(f"{by_step[step]} {step or 'done'}" for step in _STEPS if by_step[step])
        now = SYSTEM.boottime()
        if text != self._last and now - self._said_at > 0.4:
            self._last, self._said_at = text, now
            self.out.say(f"  {text}; {posts} posts", dim=True)

    def _bars(self, by_step: Counter[str], posts: int) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        colours = {"draft": "cyan", "review": "yellow", "post": "blue", "archive": "magenta", "": "green"}
        for step in _STEPS:
            count = by_step[step]
            width = round(40 * count / max(1, self.total))
            bar = Text("█" * width, style=colours[step])
            table.add_row(f"  {step or 'done':<8}", f"{count:>3}", bar)
        table.add_row("  posts", f"{posts:>3}", Text("on the site", style="dim"))
        return table

    def end(self) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None
