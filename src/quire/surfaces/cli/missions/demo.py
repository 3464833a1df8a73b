"""The demo of a mission: real workers, one of them killed half-way, and the proof that nothing was asked twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import InputError, QuireError
from quire.ledger import engine
from quire.surfaces.cli.command import Exit, Session
from quire.surfaces.cli.missions.picture import Picture, pace_of, shown

#: The variable that says where local models are.
MODELS = "QUIRE_MODELS"
LOCAL_MARK = "[a real model on this machine: very small, it writes sentences and knows nothing]"
#: The demo gives up after this long; with a model that computes its answers, after so long.
LIMIT_SECONDS, LIMIT_LOCAL_SECONDS = 120.0, 1800.0


def run_demo(session: Session, directory: str | None, model: str = "scripted") -> int:
    """Run the demo of a mission and return the exit code."""
    if model == "local":
        from quire.agents import local

        local.check()
    folder = Path(directory) if directory is not None else Path(tempfile.mkdtemp(prefix="quire-mission-"))
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{str(folder)!r} is not empty; the demo wants a directory of its own")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be used: {error}") from error
    made = Demo(session, folder.resolve(), model)
    try:
        return session.run(made.run())
    finally:
        made.end()


class Demo:
    def __init__(self, session: Session, folder: Path, model: str) -> None:
        self.session = session
        self.model = model
        self.limit = LIMIT_LOCAL_SECONDS if model == "local" else LIMIT_SECONDS
        self.out = session.out
        self.folder = folder
        self.picture = Picture(self.out)
        self.workers: list[subprocess.Popen[bytes]] = []

    def _worker(self, label: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "quire.surfaces.cli", "--config", str(self.folder / "quire.toml")]
        command += ["worker", "--lease", "3s", "--label", label]
        kept = (engine.KEYRING_FILE, MODELS)
        mine = (name for name in os.environ if not name.startswith("QUIRE_") or name in kept)
        environment = {name: os.environ[name] for name in mine}
        with (self.folder / f"{label}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.workers.append(process)
        return process

    def end(self) -> None:
        """No process outlives the demo."""
        self.picture.end()
        for process in self.workers:
            if process.poll() is None:
                process.kill()
            process.wait()

    async def run(self) -> int:
        from quire.agents.blueprint.reading import load
        from quire.agents.demo import blueprint, local_blueprint
        from quire.agents.missions.flow import compiled
        from quire.agents.scripted import MARK

        made = load(local_blueprint() if self.model == "local" else blueprint())
        # JSON is YAML, too: nothing but the standard library is needed to write it.
        (self.folder / "mars-colony.yaml").write_text(json.dumps(made.as_json(), indent=2), encoding="utf-8")
        toml = 'flows = ["mars-colony.yaml"]\nledger = "sqlite:///ledger.db"\n'
        (self.folder / "quire.toml").write_text(toml, encoding="utf-8")
        self.out.say(LOCAL_MARK if self.model == "local" else MARK, colour="yellow")
        self.out.say(f"A directory of its own: {self.folder}", dim=True)
        url, name = f"sqlite:///{self.folder / 'ledger.db'}", "mars-1"
        async with Client(url, workflows=[compiled(made)], who="demo") as client:
            await client.start("mars-colony", {}, id=name)
            try:
                async with asyncio.timeout(self.limit):
                    first = self._worker("first-worker")
                    await self._until(client, name, first, said=4)
                    os.kill(first.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
                    first.wait()
                    self.picture.tell(f"kill -9 {first.pid}: the worker is gone in the middle of a turn", "red")
                    second = self._worker("second-worker")
                    self.picture.tell(f"a new worker, {second.pid}, reads the conversations back and goes on")
                    await self._until(client, name, second)
            except TimeoutError:
                raise QuireError(f"the demo did not end in {self.limit:g} s; its logs are in {self.folder}") from None
            self.picture.end()
            return await self._proof(client, name)

    async def _until(self, client: Client, name: str, worker: subprocess.Popen[bytes], said: int = 0) -> None:
        while True:
            if worker.poll() is not None:
                raise QuireError(f"the demo's worker ended by itself; see the logs in {self.folder}")
            story = await self.picture.look(client, name)
            if story is not None:
                turns = sum(len(by_turn) for by_turn in story.said.values())
                if story.record.ended or (said and turns >= said):
                    return
            await SYSTEM.sleep(0.05)

    async def _proof(self, client: Client, name: str) -> int:
        from quire.agents.begun import REPLY
        from quire.agents.missions import story as stories
        from quire.agents.missions.report import markdown

        story = await stories.read(client.ledger, name)
        if story.report is None:
            raise QuireError(f"the mission did not end well: {story.record.last_error}; look in {self.folder}")
        path = self.folder / "mars-1.md"
        path.write_text(markdown(story.report, name, story.corrections), encoding="utf-8")
        names = [call.name for call in story.calls]
        twice = len(names) - len(set(names))
        by = {worker.worker_id: worker.label for worker in await client.workers()}
        kept = [receipt for receipt in story.receipts if receipt.fn == REPLY]
        first = sum(by.get(receipt.worker) == "first-worker" for receipt in kept)
        shown(self.out, story.report.text)
        self.out.say()
        self.out.say(
            f"{len(kept)} answers, {first} of them asked for by the worker that was killed; {twice} asked for twice.",
            bold=True,
        )
        self.out.say(f"{story.spent.in_words()}; {pace_of(story)}.")
        self.out.say(f"The result: {path}", colour="green", bold=True)
        self.out.say(f"  cd {self.folder}")
        self.out.say(f"  quire mission show {name}")
        self.out.say(f"  quire mission replay {name}")
        if self.out.json:
            proof = {"answers": len(kept), "by_killed": first, "twice": twice, "result": str(path)}
            self.out.emit({**proof, "folder": str(self.folder), "record_id": name})
        return Exit.OK if not twice else Exit.UNEXPECTED
