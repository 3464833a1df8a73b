"""Replay from receipts, and what-if on a copy."""

from __future__ import annotations

import pytest

from quire.agents.blueprint.reading import load
from quire.agents.missions.daily import day_of, spent_by_day, spent_on
from quire.agents.missions.recording import NotRecorded, Recording
from quire.agents.missions.replay import replay, what_if
from quire.agents.missions.story import read
from quire.agents.missions.tried import begin, tried
from quire.errors import InputError
from quire.model.record import Status
from quire.testing import ToldClock
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked


def echo(asked: Asked) -> str:
    return f"<{agent_of(asked.prompts[0])} {asked.turn}: {asked.prompt[-30:]} #{asked.number}>"


async def test_a_replay_asks_no_model_and_comes_to_the_same_result(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model())) as client:
        await started(client, inputs={"city": "Bonn"})
        before = len(server.log)
        done = await replay(client.ledger, "m1")

    assert done.same
    assert (done.recorded, done.asked, done.differing) == (10, [], [])
    assert len(server.log) == before


async def test_a_replay_with_tools_failures_limits_and_people_comes_to_the_same_result(serve: Serve) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.number == 0:
            return Answer("busy", status=503)
        results = [row for row in asked.body["messages"] if row["role"] == "tool"]
        if "editor" not in asked.prompts[0] and not results:
            return Answer(tool=("look", {"where": "north"}), tokens=(400, 100))
        return Answer(echo(asked), refused=asked.number == 3)

    server, clock = serve(answer), ToldClock()
    agent = {"id": "a", "prompt": "[a] go", "tools": ["tests.agents.test_mission:look"], "approve": ["look"]}
    plan = load(blueprint(server.model(), limits={"tokens": 500}).as_json() | {"agents": [agent]})

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        for _ in range(12):
            clock.advance("10s")
            for record in await client.find(status=Status.NEEDS_APPROVAL):
                choice = {"May": "approve", "The": "ask again"}.get((record.question or "").split()[0], "raise")
                await client.answer(record.record_id, choice, by="ann")
            await client.work()
        report = await handle.result()
        before = len(server.log)
        done = await replay(client.ledger, "m1")

    assert done.error == ""
    assert done.same
    assert done.after is not None and done.after.text == report.text
    assert len(server.log) == before


async def test_what_if_asks_anew_only_what_the_change_touches(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model())) as client:
        handle = await started(client)
        before = len(server.log)
        done = await what_if(client.ledger, "m1", turn=2, agent="governor", prompt="The storm lasts two years.")
        kept = await handle.result()

    assert [entry.asked.prompts for entry in server.log[before : before + 2]] == [
        ["[governor] Plan the colony.", "The storm lasts two years."],
        ["[governor] Plan the colony.", "The storm lasts two years.", "FINAL: the plan."],
    ]
    assert len(server.log) == before + 3  # two turns and the reducer
    first_answer = next(text for who, text in server.log[before].asked.said if who == "model")
    assert first_answer.startswith("<governor 1:")  # turn 1 is the recorded one
    assert done.before == kept
    assert done.after is not None and done.after.text != kept.text
    assert [agent.text for agent in done.after.agents][:2] == [agent.text for agent in kept.agents][:2]


async def test_what_a_what_if_costs_and_comes_to_is_kept(serve: Serve) -> None:
    server = serve(lambda asked: Answer(echo(asked), tokens=(100, 20)))

    async with opened(blueprint(server.model())) as client:
        await started(client)
        done = await what_if(client.ledger, "m1", turn=2, agent="governor", prompt="The storm lasts two years.")
        [one] = await tried(client.ledger, "m1")
        by_day = await spent_by_day(client.ledger)
        story = await read(client.ledger, "m1")

    [day] = by_day.values()
    assert one.number == done.number == 1
    assert one.report == done.after
    assert (one.spent.calls, one.spent.tokens) == (3, 360)
    assert one.in_words().startswith("what-if 1, turn 2 of governor, another prompt: done; 3 calls, 360 tokens")
    assert day["m1, what-if 1"].tokens == 360
    assert story.spent.calls == 10  # the mission itself costs what it did


async def test_the_calls_of_a_what_if_whose_process_died_are_counted(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model(), limits={"calls_per_day": 100})) as client:
        await started(client)
        keeper = await begin(client.ledger, "m1", {"turn": 2, "agent": "", "prompt": "x", "model": None})
        await keeper.begins("governor/2 1.1", await client.ledger.now())
        [one] = await tried(client.ledger, "m1")
        [day] = (await spent_on(client.ledger, day_of(await client.ledger.now()))).values()
        await what_if(client.ledger, "m1", turn=3, agent="governor", prompt="Y")
        [figures] = await client.ledger.settings(f"spend/{day_of(await client.ledger.now())}/")

    assert one.status == "unfinished"
    assert one.spent.in_words().startswith("1 call (1 begun, cost not known), 0 tokens")
    assert day["what-if 1 governor/2 1.1"].lost == 1
    assert "what-if 2 governor/3 1.1" in figures.value  # counts towards the limits of the day


async def test_what_if_with_another_model_for_all(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model())) as client:
        await started(client)
        before = len(server.log)
        done = await what_if(client.ledger, "m1", turn=3, model="scripted")

    assert len(server.log) == before + 1  # only the reducer still asks the first model
    assert done.after is not None
    assert all("scripted model" in agent.text for agent in done.after.agents)


async def test_a_change_is_named_or_refused(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model(), names=["a"], max_turns=1, turns={})) as client:
        await started(client)
        with pytest.raises(InputError, match="what if what\\?"):
            await what_if(client.ledger, "m1", turn=1)
        with pytest.raises(InputError, match="name the agent"):
            await what_if(client.ledger, "m1", turn=1, prompt="x")
        with pytest.raises(InputError, match="there is no agent 'b'"):
            await what_if(client.ledger, "m1", turn=1, agent="b", prompt="x")


async def test_only_a_mission_that_has_ended_is_run_again(serve: Serve) -> None:
    server = serve(lambda asked: Answer("busy", status=503))

    async with opened(blueprint(server.model(), names=["a"]), clock=ToldClock()) as client:
        await started(client)
        with pytest.raises(InputError, match="'m1' is WAITING; only a mission that has ended can be run again"):
            await replay(client.ledger, "m1")


def test_a_recording_answers_nothing_that_was_not_asked() -> None:
    recording = Recording({"a/1 1.1": {"reply": [], "asked": "x"}})

    assert recording.answer("a/1 1.1", "y") is not None
    assert recording.differing == ["a/1 1.1"]
    with pytest.raises(NotRecorded, match=r"no answer for 'a/2 1\.1'"):
        recording.answer("a/2 1.1")
