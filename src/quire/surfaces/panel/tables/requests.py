"""What a person types into the status column of a row that runs is a request: obeyed, or refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.client.client import Client
from quire.errors import IllegalMove, LedgerUnavailable, QuireError
from quire.model.record import Record, Status
from quire.surfaces.panel.commands import BY, Command, change_id, obeyed
from quire.surfaces.panel.layout import STATE
from quire.surfaces.panel.table import RETRY, Row, asked_of
from quire.surfaces.panel.tables.declaration import Declared
from quire.surfaces.panel.tables.lines import TableRow
from quire.workflows.words import same


async def obey(
    client: Client, book: str, table: Declared, row: TableRow, typed: str, groups: Any, *, torn: bool
) -> str:
    """Do what was typed. Answers a note for the row; empty: it was done, and the status says so."""
    text = typed.strip()
    found = await client.ledger.load([row.record_id])
    if not found:
        return f"Record with ID {row.record_id} not found."
    record = found[0]
    blank = Row(*[""] * len(STATE))
    shown = blank._replace(record_id=row.record_id, version=row.version, asks=row.code and f"? [{row.code}]")
    definition = await client.definition(record.workflow)
    try:
        word = _meant(table, record, definition, text)
        if word is None:
            why = "a finished row never runs again; Run again starts a new record" if record.ended else ""
            raise IllegalMove(
                f"Invalid state transition: Cannot move from {row.word} to {text[:60]}." + (why and f" ({why})")
            )
        command = Command(row.record_id, word, shown, torn=torn)
        if word == _CANCEL:
            made = change_id(book, command)
            if not await client.made(row.record_id, made):
                why = "cancelled in the sheet"
                await client.cancel(row.record_id, by=BY, reason=why, undo=table.undo, change_id=made)
        else:
            await obeyed(client, book, command, groups)
    except LedgerUnavailable:
        raise
    except QuireError as error:
        await client.refused(row.record_id, row.word, text[:200], str(error), by=BY)
        return str(error)
    return ""


_CANCEL = "CANCEL"


def _meant(table: Declared, record: Record, definition: Mapping[str, Any], text: str) -> str | None:
    """The command that a word stands for where the record stands; None: it may not be typed there."""
    word = same(text)
    states = {same(step["name"]) for step in definition["steps"] if step["rests"]}
    legal: list[str] = next((step["then"] for step in definition["steps"] if step["name"] == record.step), [])
    if not record.ended:
        for name in legal:
            if same(name) == word:
                return name
        asked = asked_of(record)
        if asked is not None:
            choices = [str(choice) for choice in (asked.about or {}).get("choices", ())]
            for choice in choices or ["HAPPENED", "NOT"]:
                if same(choice) in (word, word.removesuffix("d"), word.removesuffix("ed")):
                    return choice
            if not choices and word.startswith("happened "):
                return text
        return _CANCEL if word == same(table.words["cancelled"]) and word not in states else None
    return RETRY if word == same(table.ready) and record.status is not Status.DONE else None
