"""``run.sleep``, ``run.wait``, ``run.ask``: what a step waits for that only time, others or people bring."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Any

from quire.clock import Span, seconds
from quire.errors import DefinitionError, ValueRefused
from quire.model.address import part_of
from quire.model.codec import PLAIN, codec, dump, parse
from quire.model.receipt import Keyring, Kind, key_of
from quire.model.wait import On, Wait
from quire.run.passes import Hold
from quire.workflows import approval
from quire.workflows.approval import Answer

_TIMED_OUT = "timeout"


async def sleep(hold: Hold, key: str, span: Span | datetime) -> None:
    hold.check()
    if key in hold.known:
        return
    remembered = hold.remembered.get(key)
    now = hold.host.now()
    if remembered is not None and remembered.until is not None:
        until = remembered.until
    elif isinstance(span, datetime):
        if span.tzinfo is None:
            raise DefinitionError(f"run.sleep({span!r}): a moment needs a time zone, e.g. datetime.now(UTC)")
        until = span.timestamp()
    else:
        until = now + seconds(span)
    if now < until:
        await hold.block(Wait(On.TIMER, key=key, name="sleep", until=until))
    hold.answer(hold.receipt(Kind.SLEEP, key, "sleep", "null"))


async def wait(hold: Hold, key: str, signal: str, type_: Any, timeout: Span | None) -> Any:
    hold.check()
    known = hold.known.get(key)
    if known is not None:
        if known.fn == _TIMED_OUT:
            return None
        return codec(type_).decode(known.value, f"the signal {signal!r} of {hold.record.record_id!r}")
    remembered = hold.remembered.get(key)
    now = hold.host.now()
    until = remembered.until if remembered is not None else (None if timeout is None else now + seconds(timeout))
    if until is None or now < until or await _came(hold, signal, until):
        await hold.block(Wait(On.SIGNAL, key=key, name=signal, until=until, about=_taken(hold, signal, type_)))
    hold.answer(hold.receipt(Kind.WAIT, key, signal, "null", fn=_TIMED_OUT))
    return None


def _taken(hold: Hold, signal: str, type_: Any) -> dict[str, Any] | None:
    """The schema of the values that this wait takes, if the definition of the workflow does not tell it."""
    made = codec(type_)
    declared, _ = hold.workflow.signals()
    return None if made.plain or declared.get(signal, Any) is type_ else {"value": made.schema}


async def _came(hold: Hold, signal: str, until: float) -> bool:
    """Whether a signal that came in time is kept, as while the record runs or is due: to wait is to take it."""
    with hold.flight():  # or what waits beside it would suspend the pass without it
        kept = await hold.host.ledger.signals(hold.record.record_id)
    return any(sent.name == signal and sent.taken_by is None and sent.at <= until for sent in kept)


async def ask(hold: Hold, key: str, text: str, options: dict[str, Any]) -> Answer:
    hold.check()
    known = hold.known.get(key)
    if known is not None and not approval.edited_since(hold.record, value := parse(known.value)):
        return _answered(hold, value)
    now = hold.host.now()
    shown = parse(PLAIN.encode(options["show"], f"what is shown with the question {text!r}"))
    print_ = approval.shown_print(shown)
    if known is not None and known.args_hash != print_:  # it was answered for something else: that stays in the log
        key = key_of(key, print_)
        known = hold.known.get(key)
    if known is not None:
        return _answered(hold, parse(known.value))
    asked = question(hold, key, text, {**options, "show": shown})
    if approval.expired(asked, now):
        value = approval.said(Answer(approval.EXPIRED, ahead=_ahead(asked)), hold.record)
        hold.tell("expired", question=text)
        hold.answer(hold.receipt(Kind.ASK, key, text, dump(value), args_hash=print_))
        return _answered(hold, value)
    await hold.block(asked)
    raise AssertionError("unreachable: a block does not return")


def question(hold: Hold, key: str, text: str, options: dict[str, Any]) -> Wait:
    """The question as it stands now: with its votes and after its reminders, if the same is asked already."""
    now = hold.host.now()
    asked = approval.question(key=key, text=text, now=now, **options)
    remembered = hold.remembered.get(key)
    if remembered is not None and remembered.about is not None:
        about = dict(asked.about or {}) | {"asked_at": remembered.about.get("asked_at")}
        if approval.content_hash(about) == remembered.about.get("hash"):
            asked = remembered
    if not approval.expired(asked, now):
        asked, lines = approval.passed(asked, now)
        for kind in lines:
            hold.tell(kind, question=text, by=(asked.about or {}).get("by"))
    return asked


def _ahead(wait: Wait) -> str:
    return str((wait.about or {}).get("choices", ["approve"])[0])


def _answered(hold: Hold, value: dict[str, Any]) -> Answer:
    answer = Answer(value["choice"], value["by"], value["note"], value["edits"], value.get("ahead", "approve"))
    if answer.edits:
        run = hold.run
        data = parse(run._encoded()) | dict(answer.edits)
        run.data = hold.workflow.data.decode(dump(data), f"the data of {hold.record.record_id!r} as edited")
    return answer


def signature(keyring: Keyring, *parts: str) -> str:
    """A signature over these parts, for addresses that the world outside is given."""
    secret = keyring.keys[keyring.current]
    return hmac.new(secret, key_of(*parts).encode(), hashlib.sha256).hexdigest()[:40]


def signal_url(hold: Hold, signal: str) -> str:
    host = hold.host
    if not host.public_url:
        raise ValueRefused(
            "run.signal_url needs to know where this ledger is reached from outside: set public_url in quire.toml"
        )
    record_id = hold.record.record_id
    signed = signature(host.keyring, "signal", record_id, signal)
    return f"{host.public_url.rstrip('/')}/signal/{part_of(record_id)}/{part_of(signal)}?key={signed}"
