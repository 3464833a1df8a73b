"""What is prepared for an act is part of its intent: the act, its probe, its undo and a next try get the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from quire import Act, Fail, NotDone, Prepare, PrepareAgain, Retry, Run, Status, effect, rate, workflow
from quire.client.client import Client
from quire.errors import DefinitionError
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.receipt import Kind, Receipt, fingerprint, key_of
from quire.model.wait import load_waits
from quire.testing import ToldClock, Trial, every_kill
from quire.testing.conformance import applied, claim, commit, lose_worker, new_facts, new_intent, slot


@dataclass
class Outbox:
    """Mail as Gmail has it: a draft may be sent once, and nobody receives a draft."""

    drafts: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    account: str = "ann@example.org"
    #: What the next acts raise, before or after they act.
    before: list[Exception] = field(default_factory=list)
    after: list[Exception] = field(default_factory=list)


@dataclass(frozen=True)
class Draft:
    draft_id: str
    words: int


def fits(act: Act[Outbox], to: str, text: str) -> int:
    act.deps.calls.append("check")
    assert act.prepared is None
    if "@" not in to:
        raise Fail(f"{to!r} is not an address")
    return len(text.split())


async def draft(act: Act[Outbox], to: str, text: str) -> Draft:
    act.deps.calls.append("reserve")
    draft_id = f"d{len(act.deps.calls)}"
    act.deps.drafts[draft_id] = f"{to}: {text}"
    return Draft(draft_id, act.prepared)


async def was_sent(act: Act[Outbox], to: str, text: str) -> str | NotDone:
    act.deps.calls.append(f"probe {act.prepared.draft_id}")
    return NotDone() if act.prepared.draft_id in act.deps.drafts else act.prepared.draft_id


def recall(act: Act[Outbox], value: str) -> None:
    act.deps.recalled.append(f"{value} {act.prepared.draft_id}")


def who(act: Act[Outbox]) -> dict[str, str]:
    return {"account": act.deps.account, "client": "c1"}


@effect(prepare=Prepare(fits, draft), probe=was_sent, undo=recall, actor=who, settle="0s")
async def send(act: Act[Outbox], to: str, text: str) -> str:
    act.deps.calls.append(f"act {act.prepared.draft_id}")
    if act.deps.before:
        raise act.deps.before.pop(0)
    act.deps.sent.append((act.prepared.draft_id, act.deps.drafts.pop(act.prepared.draft_id)))
    if act.deps.after:
        raise act.deps.after.pop(0)
    return str(act.prepared.draft_id)


@workflow(retry=Retry(4, first="1s", factor=1.0))
async def mails(run: Run[dict[str, Any], Outbox]) -> str:
    return await run.once(send, run.data.get("to", "bob@example.org"), "see you at noon")


@workflow(on_failure="undo", retry=Retry(1))
async def mails_in_vain(run: Run[dict[str, Any], Outbox]) -> None:
    await run.once(send, "bob@example.org", "see you at noon")
    raise Fail("after all")


def client(outbox: Outbox, clock: ToldClock, ledger: MemoryLedger | None = None) -> Client:
    flows: list[Any] = [mails, mails_in_vain]
    return Client(ledger or MemoryLedger(clock), workflows=flows, deps=outbox, clock=clock, who="ann")


async def the_receipt(client: Client, record_id: str = "m") -> Receipt:
    [receipt] = [row for row in await client.ledger.receipts(record_ids=[record_id]) if row.name == "send"]
    return receipt


async def test_what_is_prepared_is_committed_with_the_intent_and_given_to_the_act() -> None:
    outbox, clock = Outbox(), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {}, id="m")
        await quire.work()

        assert (await quire.get("m")).result == '"d2"'
        assert outbox.calls == ["check", "reserve", "act d2"]
        receipt = await the_receipt(quire)
        assert receipt.prepared == '{"draft_id":"d2","words":4}'
        assert receipt.actor == '{"account":"ann@example.org","client":"c1"}'
        assert receipt.args_hash == fingerprint(receipt.args) and "d2" not in receipt.args
        kinds = [event.kind for event in await quire.ledger.events(record_id="m")]
        assert kinds == ["started", "claimed", "effect.intended", "effect.done", "done"]


async def test_bad_input_fails_before_there_is_an_intent_and_costs_no_try() -> None:
    outbox, clock = Outbox(), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {"to": "bob"}, id="m")
        await quire.work()

        record = await quire.get("m")
        assert (record.status, record.attempt) == (Status.ERROR, 1)
        assert "'bob' is not an address" in (record.last_error or "")
        assert outbox.calls == ["check"] and not outbox.drafts
        assert not [row for row in await quire.ledger.receipts(record_ids=["m"]) if row.name == "send"]


@pytest.mark.parametrize(
    ("error", "drafts"), [(NotDone("busy"), ["d2", "d2"]), (PrepareAgain("a newer revision"), ["d2", "d5"])]
)
async def test_a_next_try_acts_with_the_same_unless_that_does_not_fit_any_more(
    error: NotDone, drafts: list[str]
) -> None:
    outbox, clock = Outbox(before=[error]), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {}, id="m")
        await quire.work()
        clock.advance(10)
        await quire.work()

        assert (await quire.get("m")).status is Status.DONE
        assert [call for call in outbox.calls if call.startswith("act")] == [f"act {name}" for name in drafts]
        assert len(outbox.sent) == 1
        intents = [event for event in await quire.ledger.events(record_id="m") if event.kind == "effect.intended"]
        assert len(intents) == 2


async def test_a_probe_asks_for_this_very_thing_and_the_next_try_takes_it() -> None:
    outbox, clock = Outbox(before=[RuntimeError("cut off")]), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {}, id="m")
        await quire.work()
        clock.advance(10)
        await quire.work()

        assert outbox.calls == ["check", "reserve", "act d2", "probe d2", "act d2"]
        assert [draft_id for draft_id, _ in outbox.sent] == ["d2"]


async def test_what_was_done_is_undone_by_what_was_prepared_for_it() -> None:
    outbox, clock = Outbox(), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails_in_vain, {}, id="m")
        await quire.work()

        assert outbox.recalled == ["d2 d2"]
        assert (await the_receipt(quire)).prepared == '{"draft_id":"d2","words":4}'


@every_kill
async def test_killed_at_every_write_one_mail_leaves_and_nobody_is_asked() -> None:
    """A draft that no intent names may be left behind. Nobody receives a draft."""
    outbox = Outbox()
    async with Trial(mails, deps=outbox) as trial:
        record = await trial.start({}, id="m")
        await trial.settle()

        assert record.status == "DONE"
        assert len(outbox.sent) == 1


@every_kill
async def test_killed_at_every_write_an_undoing_takes_back_what_was_prepared() -> None:
    outbox = Outbox()
    async with Trial(mails_in_vain, deps=outbox) as trial:
        record = await trial.start({}, id="m")
        await trial.settle()

        assert record.status == "CANCELLED"
        assert len(outbox.sent) == 1
        assert {line.split()[0] for line in outbox.recalled} <= {outbox.sent[0][0]}


async def test_a_rate_that_is_used_up_leaves_no_second_draft_behind() -> None:
    """What was reserved before the rate was asked is kept while the record waits for a token."""
    outbox, clock = Outbox(), ToldClock()

    @effect(prepare=Prepare(fits, draft), rate=rate(1, "1m", "mails"))
    async def send_slowly(act: Act[Outbox], to: str, text: str) -> str:
        act.deps.sent.append((act.prepared.draft_id, act.deps.drafts.pop(act.prepared.draft_id)))
        return str(act.prepared.draft_id)

    @workflow
    async def slow(run: Run[dict[str, Any], Outbox]) -> str:
        return await run.once(send_slowly, f"{run.data['n']}@example.org", "hello")

    async with Client(MemoryLedger(clock), workflows=[slow], deps=outbox, clock=clock) as quire:
        await quire.start_many(slow, [{"n": n} for n in range(3)], ids=["a", "b", "c"])
        for _ in range(4):
            await quire.work()
            clock.advance(60)
        assert {(await quire.get(name)).status for name in "abc"} == {Status.DONE}
    assert outbox.calls.count("reserve") == 3 and not outbox.drafts


@pytest.mark.parametrize("way", ["halt", "cancel"])
async def test_nothing_is_reserved_under_a_halt_or_over_a_cancel_request(way: str) -> None:
    """The order comes while the input is checked: nobody has told the worker yet."""
    clock, outbox = ToldClock(), Outbox()
    ledger = MemoryLedger(clock)
    others = Client(ledger, clock=clock, who="bob")

    async def checks(act: Act[Outbox]) -> None:
        await (others.halt() if way == "halt" else others.cancel("m"))

    async def reserves(act: Act[Outbox]) -> None:
        act.deps.calls.append("reserve")

    @effect(prepare=Prepare(checks, reserves))
    async def acts(act: Act[Outbox]) -> None:
        act.deps.calls.append("act")

    @workflow
    async def stopped(run: Run[dict[str, Any], Outbox]) -> None:
        await run.once(acts)

    async with Client(ledger, workflows=[stopped], deps=outbox, clock=clock) as quire:
        await quire.start(stopped, {}, id="m")
        await quire.work()
        assert (await quire.get("m")).status is Status.CANCELLED
    assert outbox.calls == []


async def test_what_another_account_began_is_asked_of_a_person_and_both_are_named() -> None:
    """Under another account "not there" proves nothing."""
    outbox, clock = Outbox(after=[RuntimeError("cut off")]), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {}, id="m")
        await quire.work()
        outbox.account = "carl@example.org"
        clock.advance(10)
        await quire.work()

        record = await quire.get("m")
        assert record.status is Status.NEEDS_APPROVAL
        assert record.question == (
            "Did 'send' happen? (it was begun as account ann@example.org, client c1, and this worker acts as account "
            "carl@example.org, client c1)"
        )
        assert not any(call.startswith("probe") for call in outbox.calls)
        await quire.resolve("m", happened=True, value="d2")
        await quire.work()
        assert (await quire.get("m")).status is Status.DONE
    assert len(outbox.sent) == 1


async def test_what_another_account_did_is_not_undone_unasked() -> None:
    outbox, clock = Outbox(), ToldClock()
    async with client(outbox, clock) as quire:
        await quire.start(mails, {}, id="m")
        await quire.work()
        outbox.account = "carl@example.org"
        await quire.cancel("m", undo=True)
        await quire.work()

        record = await quire.get("m")
        assert record.status is Status.NEEDS_APPROVAL and not outbox.recalled
        assert "begun as account ann@example.org" in (record.question or "")
        outbox.account = "ann@example.org"
        await quire.resolve("m", happened=False)
        await quire.work()
        assert outbox.recalled == ["d2 d2"]
        assert load_waits((await quire.get("m")).waits) == ()


async def test_a_repeatable_act_of_another_account_is_asked_too() -> None:
    clock, outbox = ToldClock(), Outbox()

    @effect(repeat=True, actor=who, timeout="20s")
    async def acts(act: Act[Outbox]) -> None:
        act.deps.calls.append("act")

    @workflow
    async def again(run: Run[dict[str, Any], Outbox]) -> None:
        await run.once(acts)

    ledger = MemoryLedger(clock)
    async with Client(ledger, workflows=[again], deps=outbox, clock=clock) as quire:
        await quire.start(again, {}, id="m")
        [row] = (await claim(ledger, slot("again", "again"), worker="gone")).records
        key = key_of("again", "m", "again", 1, "", Kind.ONCE, "acts", 0)
        text = '{"args":[],"kwargs":{}}'
        said = {"fn": acts.path, "args": text, "args_hash": fingerprint(text), "prepared": "", "actor": '"ann"'}
        applied(await commit(ledger, new_facts(row, new_intent(row, "acts", key=key, act_by=clock.now(), **said))))
        await lose_worker(ledger, clock, worker="gone")
        await quire.work()

        assert (await quire.get("m")).status is Status.NEEDS_APPROVAL
        assert "begun as ann, and this worker acts as account ann@example.org" in str((await quire.get("m")).question)
    assert outbox.calls == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"prepare": fits}, "write it as Prepare"),
        ({"prepare": Prepare()}, "write it as Prepare"),
        ({"prepare": Prepare(check=lambda act: None)}, "must take the same arguments as its act"),
        ({"actor": "ann"}, "says who acts, not 'ann'"),
    ],
)
def test_what_cannot_prepare_an_act_is_refused_where_it_is_declared(given: dict[str, Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):

        @effect(**given)  # type: ignore[untyped-decorator]
        async def acts(act: Act[Outbox], to: str) -> None: ...
