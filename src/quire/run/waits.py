"""``run.sleep``, ``run.wait``, ``run.ask``: what a step waits for that only time, others or people bring."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Any, NoReturn

from quire.clock import Span, seconds
from quire.errors import DefinitionError, NotNow, ValueRefused
from quire.model.address import part_of
from quire.model.codec import PLAIN, codec, dump, parse
from quire.model.receipt import Keyring, Kind, key_of
from quire.model.wait import On, Wait
from quire.run.passes import Pass
from quire.workflows import approval
from quire.workflows.approval import Answer

_TIMED_OUT = "timeout"


async def sleep(pass_: Pass, key: str, span: Span | datetime) -> None:
    pass_.check()
    if key in pass_.known:
        return
    remembered = pass_.remembered.get(key)
    now = pass_.host.now()
    if remembered is not None and remembered.until is not None:
        until = remembered.until
    elif isinstance(span, datetime):
        if span.tzinfo is None:
            raise DefinitionError(f"run.sleep({span!r}): a moment needs a time zone, e.g. datetime.now(UTC)")
        until = span.timestamp()
    else:
        until = now + seconds(span)
    if now < until:
        await pass_.block(Wait(On.TIMER, key=key, name="sleep", until=until))
    pass_.answer(pass_.receipt(Kind.SLEEP, key, "sleep", "null"))


async def not_now(pass_: Pass, key: str, name: str, error: NotNow) -> NoReturn:
    """Wait until something can be done that cannot be done for now. The next pass tries it again."""
    await pass_.block(held(pass_, key, name, error))
    raise AssertionError("unreachable: a block does not return")


def held(pass_: Pass, key: str, name: str, error: NotNow) -> Wait:
    """What the record waits for then: a moment, with the sentence and the command that help."""
    key = f"{key}held"
    earlier = pass_.remembered.get(key)
    times = 0 if earlier is None else (earlier.about or {}).get("times", 0)
    until = error.due(pass_.host.now(), times)
    about = {"because": str(error), "remedy": error.remedy, "times": times + 1}
    return Wait(On.TIMER, key=key, name=name, until=until, about=about)


async def wait(pass_: Pass, key: str, signal: str, type_: Any, timeout: Span | None) -> Any:
    pass_.check()
    known = pass_.known.get(key)
    if known is not None:
        if known.fn == _TIMED_OUT:
            return None
        return codec(type_).decode(known.value, f"the signal {signal!r} of {pass_.record.record_id!r}")
    remembered = pass_.remembered.get(key)
    now = pass_.host.now()
    until = remembered.until if remembered is not None else (None if timeout is None else now + seconds(timeout))
    if until is None or now < until or await _came(pass_, signal, until):
        await pass_.block(Wait(On.SIGNAL, key=key, name=signal, until=until, about=_taken(pass_, signal, type_)))
    pass_.answer(pass_.receipt(Kind.WAIT, key, signal, "null", fn=_TIMED_OUT))
    return None


def _taken(pass_: Pass, signal: str, type_: Any) -> dict[str, Any] | None:
    """The schema of the values that this wait takes, if the definition of the workflow does not tell it."""
    made = codec(type_)
    declared, _ = pass_.workflow.signals()
    return None if made.plain or declared.get(signal, Any) is type_ else {"value": made.schema}


async def _came(pass_: Pass, signal: str, until: float) -> bool:
    """Return whether a signal that came in time is kept, as while the record runs or is due: to wait is to take it."""
    with pass_.flight():  # or what waits beside it would suspend the pass without it
        kept = await pass_.host.ledger.signals(pass_.record.record_id)
    return any(sent.name == signal and sent.taken_by is None and sent.at <= until for sent in kept)


async def ask(pass_: Pass, key: str, text: str, options: dict[str, Any]) -> Answer:
    pass_.check()
    known = pass_.known.get(key)
    if known is not None and not approval.edited_since(pass_.record, value := parse(known.value)):
        return _answered(pass_, value)
    now = pass_.host.now()
    shown = parse(PLAIN.encode(options["show"], f"what is shown with the question {text!r}"))
    print_ = approval.shown_print(shown)
    if known is not None and known.args_hash != print_:  # it was answered for something else: that stays in the log
        key = key_of(key, print_)
        known = pass_.known.get(key)
    if known is not None:
        return _answered(pass_, parse(known.value))
    asked = question(pass_, key, text, {**options, "show": shown})
    if approval.expired(asked, now):
        value = approval.said(Answer(approval.EXPIRED, ahead=_ahead(asked)), pass_.record)
        pass_.tell("expired", question=text)
        pass_.answer(pass_.receipt(Kind.ASK, key, text, dump(value), args_hash=print_))
        return _answered(pass_, value)
    await pass_.block(asked)
    raise AssertionError("unreachable: a block does not return")


def question(pass_: Pass, key: str, text: str, options: dict[str, Any]) -> Wait:
    """The question as it stands now: with its votes and after its reminders, if the same is asked already."""
    now = pass_.host.now()
    asked = approval.question(key=key, text=text, now=now, **options)
    remembered = pass_.remembered.get(key)
    if remembered is not None and remembered.about is not None:
        about = dict(asked.about or {}) | {"asked_at": remembered.about.get("asked_at")}
        if approval.content_hash(about) == remembered.about.get("hash"):
            asked = remembered
    if not approval.expired(asked, now):
        asked, lines = approval.passed(asked, now)
        for kind in lines:
            pass_.tell(kind, question=text, by=(asked.about or {}).get("by"))
    return asked


def _ahead(wait: Wait) -> str:
    return str((wait.about or {}).get("choices", ["approve"])[0])


def _answered(pass_: Pass, value: dict[str, Any]) -> Answer:
    answer = Answer(value["choice"], value["by"], value["note"], value["edits"], value.get("ahead", "approve"))
    if answer.edits:
        run = pass_.run
        data = parse(run._encoded()) | dict(answer.edits)
        run.data = pass_.workflow.data.decode(dump(data), f"the data of {pass_.record.record_id!r} as edited")
    return answer


def signature(keyring: Keyring, *parts: str) -> str:
    """Return a signature over these parts, for addresses that the world outside is given."""
    secret = keyring.keys[keyring.current]
    return hmac.new(secret, key_of(*parts).encode(), hashlib.sha256).hexdigest()[:40]


def signal_url(pass_: Pass, signal: str) -> str:
    host = pass_.host
    if not host.public_url:
        raise ValueRefused(
            "run.signal_url needs to know where this ledger is reached from outside: set public_url in quire.toml"
        )
    record_id = pass_.record.record_id
    signed = signature(host.keyring, "signal", record_id, signal)
    return f"{host.public_url.rstrip('/')}/signal/{part_of(record_id)}/{part_of(signal)}?key={signed}"
