"""Retrying and rewinding missions: what failed is done again, and only that."""

from __future__ import annotations

import pytest

from quire.agents import mission_view
from quire.agents.missions.replay import replay
from quire.agents.missions.story import read
from quire.errors import IllegalMove
from quire.model.record import Status
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked, StandIn


def echo(asked: Asked) -> Answer:
    return Answer(f"<{agent_of(asked.prompts[0])} {asked.turn} #{asked.number}>")


class Broken:
    """The engineer's model is out of order in turn 2, until it is mended."""

    def __init__(self, serve: Serve) -> None:
        self.broken = True
        self.server: StandIn = serve(self.answer)
        self._seen = 0

    def answer(self, asked: Asked) -> Answer:
        if self.broken and "[engineer]" in asked.prompts[0] and asked.turn == 2:
            return Answer("out of order", status=401)
        return echo(asked)

    def asked(self) -> list[tuple[str, int]]:
        """Who was asked for which turn since this was asked last."""
        new = self.server.log[self._seen :]
        self._seen = len(self.server.log)
        return sorted((agent_of(entry.asked.prompts[0]), entry.asked.turn) for entry in new)


@pytest.fixture
def broken(serve: Serve) -> Broken:
    return Broken(serve)


@pytest.mark.parametrize("step", ["", "agents"])
async def test_a_retry_of_a_mission_does_its_failed_agents_again_from_the_turn_that_failed(
    broken: Broken, step: str
) -> None:
    async with opened(blueprint(broken.server.model())) as client:
        handle = await started(client)
        assert (await client.get("m1")).status is Status.ERROR
        assert len(broken.asked()) == 8
        broken.broken = False
        await client.retry("m1", step=step)
        await client.work()
        report = await handle.result()

    assert broken.asked() == [("editor", 1), ("engineer", 2), ("engineer", 3)]
    assert report.status == "done"
    assert [agent.turns for agent in report.agents] == [3, 3, 3]


async def test_an_agent_that_waits_is_rewound_by_itself_and_asked_only_for_its_turn(serve: Serve) -> None:
    server = serve(lambda asked: Answer("no", refused=True) if asked.number == 1 else echo(asked))
    async with opened(blueprint(server.model(), names=["governor"])) as client:
        handle = await started(client)
        part = await client.get("m1/colony~1/0")
        assert part.status is Status.NEEDS_APPROVAL
        await client.retry(part.record_id, step="turn")
        await client.work()
        report = await handle.result()

    assert [entry.asked.turn for entry in server.log] == [1, 2, 2, 3, 1]
    assert report.status == "done"


async def test_an_agent_whose_mission_has_gone_on_is_not_rewound_and_its_error_names_what_is(broken: Broken) -> None:
    async with opened(blueprint(broken.server.model())) as client:
        await started(client)
        part = await client.get("m1/colony~1/0")
        with pytest.raises(IllegalMove, match="its parent has gone on without it"):
            await client.retry(part.record_id, step="turn")

    assert "to ask anew, once the mission has ended: quire retry m1 --from agents" in (part.last_error or "")


async def test_a_partial_result_becomes_whole_when_the_mission_is_rewound_to_its_agents(broken: Broken) -> None:
    async with opened(blueprint(broken.server.model(), policy="best_effort")) as client:
        handle = await started(client)
        assert (await handle.result()).status == "partial"
        broken.asked()
        broken.broken = False
        await client.retry("m1", step="agents")
        await client.work()
        report = await handle.result()

    assert broken.asked() == [("editor", 1), ("engineer", 2), ("engineer", 3)]
    assert report.status == "done"


async def test_a_mission_that_is_rewound_to_its_reducer_asks_nobody_else(broken: Broken) -> None:
    broken.broken = False
    async with opened(blueprint(broken.server.model())) as client:
        await started(client)
        broken.asked()
        await client.retry("m1", step="reduce")
        await client.work()
        record = await client.get("m1")

    assert record.status is Status.DONE
    assert broken.asked() == [("editor", 1)]


async def test_a_mission_that_is_rewound_to_its_beginning_is_another_conversation(broken: Broken) -> None:
    broken.broken = False
    async with opened(blueprint(broken.server.model(), max_turns=3)) as client:
        handle = await started(client, inputs={"city": "Bonn"})
        before = await handle.result()
        all_asked = broken.asked()
        await client.retry("m1", step="begin")
        await client.work()
        after = await handle.result()
        story, view = await read(client.ledger, "m1"), await mission_view(client.ledger, "m1")
        replayed = await replay(client.ledger, "m1")

    assert broken.asked() == all_asked
    assert [agent.turns for agent in after.agents] == [3, 3, 3]
    assert {agent.text for agent in before.agents}.isdisjoint(agent.text for agent in after.agents)
    assert story.inputs == {"city": "Bonn"}
    assert replayed.same
    assert [agent["turns"][2]["text"] for agent in view["agents"]] == [agent.text for agent in after.agents]


async def test_a_step_of_the_other_kind_is_refused_in_words(broken: Broken) -> None:
    broken.broken = False
    async with opened(blueprint(broken.server.model(), names=["a"], max_turns=1, turns={})) as client:
        await started(client)
        await client.retry("m1", step="turn")
        await client.work()
        record = await client.get("m1")

    assert record.status is Status.ERROR
    assert "is a mission; turns are taken by its parts" in (record.last_error or "")
