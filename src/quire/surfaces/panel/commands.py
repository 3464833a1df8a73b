"""A word typed in ``command`` is a request: checked, obeyed or refused with the reason, and obeyed once.

Its id is made of the record, the version and the question that the row showed, and the word. The row shows another
version only after the same batch has cleared the cell, so a word that is read again beside the same version was read
before: under the same id the ledger does nothing twice, whoever died in between (protocol 21).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quire.client.client import Client
from quire.clock import Clock, iso
from quire.errors import IllegalMove, InputError, LedgerUnavailable, NotFound, QuireError, StaleVersion, did_you_mean
from quire.model.fit import as_typed, needs_value
from quire.model.record import Record, Status
from quire.model.wait import On, Wait
from quire.surfaces.panel.table import CANCEL, HAPPENED, NOT, RETRY, Row, asked_of, code, words

#: Who acts: a cell does not know who typed in it.
BY = "sheet"


class Command(NamedTuple):
    """A word, and what its row showed when it was read."""

    record_id: str
    word: str
    shown: Row
    #: What is asked changed while the word was typed: it is not known which question it answers.
    torn: bool = False
    #: It was typed over the next step: the record shall go there.
    moves: bool = False


def change_id(book: str, command: Command) -> str:
    word = f">{command.word}" if command.moves else command.word
    bound = [book, command.record_id, command.shown.version, command.shown.code, word.casefold()]
    return "sheet-" + hashlib.sha256("\n".join(bound).encode()).hexdigest()[:32]


async def obey(
    client: Client, book: str, command: Command, clock: Clock, groups: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Do it; answers what to say in the row. Raises only if the ledger does not answer: then it is asked again."""
    word = command.word.strip()
    try:
        reply = await obeyed(client, book, command._replace(word=word), groups or {})
    except LedgerUnavailable:
        raise
    except QuireError as error:
        return f"{word[:40]} refused: {error}"
    return f"{reply} ({iso(clock.now())[11:19]}Z)"


async def obeyed(client: Client, book: str, command: Command, groups: Mapping[str, Sequence[str]]) -> str:
    """Do it; raises what refuses it."""
    record_id, word, id_ = command.record_id, command.word, change_id(book, command)
    found = await client.ledger.load([record_id])
    if not found:
        raise NotFound(f"there is no record {record_id!r} in this ledger")
    record, upper = found[0], word.upper()
    if await client.made(record_id, id_):
        return f"{upper}: done"
    if command.moves:
        _fresh(record, command.shown)
        definition = await client.definition(record.workflow)
        legal: list[str] = next((step["then"] for step in definition["steps"] if step["name"] == record.step), [])
        step = next((name for name in legal if name.casefold() == word.casefold()), word)
        await client.move(record_id, step, by=BY, change_id=id_)
        return f"{step}: moved"
    if upper == CANCEL:
        after = await client.cancel(record_id, by=BY, reason="cancelled in the sheet", change_id=id_)
        return "CANCEL: it is asked to stop" if after.status is Status.RUNNING else "CANCEL: done"
    if upper == RETRY:
        _fresh(record, command.shown)
        await client.retry(record_id, by=BY, change_id=id_)
        return "RETRY: done"
    asked = asked_of(record)
    if command.shown.code or asked is not None:
        return await _answer(client, command, record, asked, id_, groups)
    _fresh(record, command.shown)
    return await _move(client, command, record, id_)


def _fresh(record: Record, shown: Row) -> None:
    if str(record.version) != shown.version:
        raise StaleVersion(f"the record has changed since it was shown: it is {record.status} now; look at it again")


async def _answer(
    client: Client,
    command: Command,
    record: Record,
    asked: Wait | None,
    id_: str,
    groups: Mapping[str, Sequence[str]],
) -> str:
    word, shown = command.word.upper(), command.shown.code
    if asked is None:
        raise IllegalMove(f"it asks nothing any more; it is {record.status}")
    if command.torn or shown != code(asked):
        raise StaleVersion("what is asked has changed since it was shown; look at it again, then answer")
    if asked.on is On.DOUBT:
        return await _resolved(client, command.word, record, asked, id_)
    about = asked.about or {}
    choices = [str(choice) for choice in about.get("choices", ())]
    choice = next((choice for choice in choices if choice.casefold() == word.casefold()), None)
    if choice is None:
        raise InputError(f"{command.word!r} is no answer to this{did_you_mean(command.word.lower(), choices)}")
    named = [str(name) for name in about.get("by", ())]
    if named:
        raise IllegalMove(
            f"it is for {', '.join(named)}, and a cell does not know who types in it; "
            f"answer with quire answer {record.record_id} {choice}, or by a link"
        )
    await client.answer(
        record.record_id, choice, by=BY, seen=shown, question=asked.key, via="sheet", groups=groups, change_id=id_
    )
    return f"{choice.upper()}: done"


async def _resolved(client: Client, typed: str, record: Record, asked: Wait, id_: str) -> str:
    """A doubt: NOT, HAPPENED, or HAPPENED and what it returned."""
    first, _, rest = typed.partition(" ")
    word, text = first.upper(), rest.strip()
    if word not in (HAPPENED, NOT) or (text and word == NOT):
        raise InputError(f"{typed!r} is no answer here; type {HAPPENED} or {NOT}")
    schema = (asked.about or {}).get("value")
    if word == HAPPENED and not text and needs_value(schema):
        raise InputError(f"the step goes on with what {asked.name!r} returned; type {HAPPENED} and that value")
    value = as_typed(text, schema) if text else None
    happened = word == HAPPENED
    await client.resolve(record.record_id, happened=happened, value=value, by=BY, effect=asked.name, change_id=id_)
    return f"{word}: done"


async def _move(client: Client, command: Command, record: Record, id_: str) -> str:
    definition = await client.definition(record.workflow)
    legal: list[str] = next((step["then"] for step in definition["steps"] if step["name"] == record.step), [])
    step = next((name for name in legal if name.casefold() == command.word.casefold()), None)
    if step is None:
        known = words(record, None, definition)
        raise InputError(
            f"{command.word[:40]!r} is nothing that can be done with it while it is {record.status}"
            f"{did_you_mean(command.word.upper(), [*known, *legal])}"
        )
    await client.move(record.record_id, step, by=BY, change_id=id_)
    return f"{step}: moved"
