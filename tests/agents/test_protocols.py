"""The protocols of Gemini, OpenAI and Anthropic, over real HTTP: answers, streams, streams that break, refusals."""

from __future__ import annotations

import pytest

from quire.agents.missions.story import read
from quire.model.record import Status
from quire.testing import ToldClock
from tests.agents.conftest import KEY, Serve
from tests.agents.missions import blueprint, opened, started
from tests.agents.stand_in import Answer, Asked

PROTOCOLS = ["google", "openai", "anthropic"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_mission_runs_over_each_protocol(serve: Serve, protocol: str, stream: bool) -> None:
    server = serve(lambda asked: f"answer {asked.turn} of many words to {asked.prompt[:20]}")

    async with opened(blueprint(server.model(protocol, stream=stream), names=["engineer"])) as client:
        report = await (await started(client)).result()

        assert report.text.strip() == "answer 1 of many words to [editor] Make one pl"
        assert [asked.protocol for asked in server.answered] == [protocol] * 4
        assert report.spent.tokens == 4 * 15
        said = server.answered[2].said
    assert [who for who, _ in said] == ["user", "model", "user", "model", "user"]


@pytest.mark.parametrize("cut", ["reset", "closed"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_that_is_cut_in_the_middle_is_asked_again_with_the_same_prompt(
    serve: Serve, protocol: str, cut: str
) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer("one two three four five six seven eight", cut=cut if asked.number == 0 else "")

    server, clock = serve(answer), ToldClock()
    plan = blueprint(server.model(protocol, stream=True), names=["engineer"], max_turns=1, turns={})

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        clock.advance("10s")
        await client.work()
        report = await handle.result()
        story = await read(client.ledger, "m1")

    assert "eight" in report.agents[0].text
    assert server.log[0].asked.said == server.log[1].asked.said
    assert [call.error.partition(":")[0] for call in story.calls] == ["transient", "", ""]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_refusal_is_for_a_person_and_nothing_is_rewritten(serve: Serve, protocol: str) -> None:
    server = serve(lambda asked: Answer("fine", refused=asked.number == 0))
    plan = blueprint(server.model(protocol), names=["engineer"], max_turns=1, turns={}, approver="ann@x.eu")

    async with opened(plan) as client:
        handle = await started(client)
        [part] = [record for record in await client.find() if record.parent_id]

        assert part.status is Status.NEEDS_APPROVAL
        assert part.question is not None and "refuses to answer" in part.question
        assert len(server.log) == 1

        await client.answer(
            part.record_id, "ask again", by="ann@x.eu", edits={"prompt": "[engineer] Plan it politely."}
        )
        await client.work()
        report = await handle.result()

    assert server.log[1].asked.prompts == ["[engineer] Plan it politely."]
    assert report.agents[0].text == "fine"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_too_many_requests_with_retry_after_is_asked_again_then(serve: Serve, protocol: str) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.number == 0:
            return Answer("slow down", status=429, headers={"Retry-After": "30"})
        return Answer("fine")

    server, clock = serve(answer), ToldClock()
    plan = blueprint(server.model(protocol), names=["engineer"], max_turns=1, turns={})

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        assert len(server.log) == 1  # neither the library nor the worker asks before its time

        clock.advance("29s")
        await client.work()
        assert len(server.log) == 1

        clock.advance("2s")
        await client.work()
        assert (await handle.result()).agents[0].text == "fine"
    assert server.log[0].asked.said == server.log[1].asked.said


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_wrong_key_is_not_tried_again_and_not_shown(serve: Serve, protocol: str) -> None:
    server = serve(lambda asked: Answer(f"the key {KEY} is not known", status=401))
    plan = blueprint(server.model(protocol), names=["engineer"], max_turns=1, turns={})

    async with opened(plan) as client:
        await started(client)
        record = await client.get("m1")

        assert record.status is Status.ERROR
        assert record.last_error is not None and "permanent" in record.last_error
        assert KEY not in record.last_error and "[secret]" in record.last_error
    assert len(server.log) == 1
