"""The result of a mission in the folder, whoever ran it and however it ended."""

from __future__ import annotations

from pathlib import Path

from quire.client.client import Client
from quire.folder.local import LocalFolder
from quire.model.record import Status
from quire.upkeep.projecting import projector_of
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked


def echo(asked: Asked) -> Answer:
    return Answer(f"<{agent_of(asked.prompts[0])} {asked.turn}>")


async def projected(client: Client, path: Path) -> str:
    folder = LocalFolder(path)
    await folder.open()
    try:
        await projector_of(client.ledger, folder, client.clock).catch_up()
    finally:
        await folder.close()
    return _file(path)


def _file(path: Path) -> str:
    [file] = path.rglob("result.md")
    assert file.relative_to(path).as_posix() == "Workflows/colony/artifacts/results/m1/result.md"
    return file.read_text(encoding="utf-8")


async def test_a_mission_that_has_ended_has_its_result_in_the_folder(serve: Serve, tmp_path: Path) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model())) as client:
        await started(client)
        text = await projected(client, tmp_path)

    assert text.startswith("# colony\n\n<editor 1>\n")
    assert "### governor\n\n<governor 3>" in text


async def test_one_that_failed_says_so_and_is_replaced_when_it_succeeds(serve: Serve, tmp_path: Path) -> None:
    broken = [True]

    def answer(asked: Asked) -> Answer:
        if broken[0] and "[engineer]" in asked.prompts[0] and asked.turn == 2:
            return Answer("wrong", status=401)
        return echo(asked)

    server = serve(answer)

    async with opened(blueprint(server.model())) as client:
        handle = await started(client)
        assert (await client.get("m1")).status is Status.ERROR
        first = await projected(client, tmp_path)
        broken[0] = False
        await client.retry("m1")
        await client.work()
        await handle.result()
        second = await projected(client, tmp_path)

    assert "There is no result. The mission is ERROR: Fail: 3 of 3 agents must finish" in first
    assert "### engineer\n\n*failed: " in first
    assert "<governor 3>" in first and "<engineer 1>" in first  # what was said is not lost
    assert second.startswith("# colony\n\n<editor 1>\n")
