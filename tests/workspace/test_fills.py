"""Random templates against a reference: tabs, tables, headers, emoji, right-to-left; and people who type meanwhile."""

from __future__ import annotations

import dataclasses
import os
import random
from typing import Any

import pytest

from quire.workflows.effect import Act, PrepareAgain
from quire.workspace import connected, docs
from quire.workspace.filling import PLACE
from tests.workspace.worlds import ME, World

NAMES = ("company", "fee", "start", "a.b", "x_1")
WORDS = ("Dear", "🎉", "שלום", "the fee", "{", "}", "مرحبا", "👩‍👩‍👧", "\u00a0", "é", "ok.", "{ {", "𝒳")
#: How many templates are filled; ``QUIRE_FILLS=1000`` is the full scale.
FILLS = int(os.environ.get("QUIRE_FILLS", "25"))
ROUNDS = int(os.environ.get("QUIRE_ROUNDS", "20"))


def _text(chance: random.Random) -> str:
    parts = []
    for _ in range(chance.randrange(1, 7)):
        blank = chance.choice(("", " ", "\u00a0"))
        place = f"{{{{{blank}{chance.choice(NAMES)}{blank}}}}}"
        parts.append(place if chance.random() < 0.4 else chance.choice(WORDS))
    return chance.choice((" ", "")).join(parts)


def _requests(chance: random.Random) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(chance.randrange(1, 5)):
        text = _text(chance) + "\n"
        found.append({"insertText": {"location": {"index": 1}, "text": text}})
        bold = {"textStyle": {"bold": True}, "fields": "bold", "range": {"startIndex": 1, "endIndex": 3}}
        found.append({"updateTextStyle": bold})
    if chance.random() < 0.5:
        found.append({"insertTable": {"rows": 1, "columns": 2, "location": {"index": 1}}})
        found.append({"insertText": {"location": {"index": 5}, "text": _text(chance)}})
    if chance.random() < 0.5:
        found.append({"createHeader": {"type": "DEFAULT"}})
    return found


def _document(world: World, chance: random.Random) -> str:
    made: str = world("POST", "/v1/documents", {"title": "T"})["documentId"]
    answer = world("POST", f"/v1/documents/{made}:batchUpdate", {"requests": _requests(chance)})
    for reply in answer["replies"]:
        if header := reply.get("createHeader", {}).get("headerId"):
            insert = {"insertText": {"location": {"index": 0, "segmentId": header}, "text": _text(chance)}}
            world("POST", f"/v1/documents/{made}:batchUpdate", {"requests": [insert]})
    return made


def _values(chance: random.Random, text: str) -> dict[str, str]:
    names = {match[1] for match in PLACE.finditer(text)}
    others = (*WORDS, "", "Acme 🎉", "{{fee}}", "{{company}}", "two\nlines", "}} {{")
    return {name: chance.choice(others) for name in sorted(names)}


async def _filled(act: Act[Any], document: str, values: dict[str, str], meanwhile: Any = None) -> int:
    """Fill as the engine does: prepared anew as often as Google refuses the batch. Return how often that was."""
    prepare = docs.fill.prepare
    assert prepare is not None and prepare.check is not None
    for tries in range(20):
        prepared = await prepare.check(act, document, values)  # type: ignore[misc]
        if meanwhile is not None and tries < 2:
            meanwhile()
        try:
            await docs.fill(dataclasses.replace(act, prepared=prepared), document, values)
        except PrepareAgain:
            continue
        return tries
    raise AssertionError("it is never filled")


async def test_random_templates_are_filled_as_the_reference_says(world: World) -> None:
    async with connected(world.emulator.url, user=ME):
        for seed in range(FILLS):
            chance = random.Random(seed)
            document = _document(world, chance)
            before = await docs.read(document)
            values = _values(chance, before)
            await _filled(Act(f"k{seed}", None, "r"), document, values)
            wanted = PLACE.sub(lambda match, of=values: of[match[1]], before)  # type: ignore[misc]
            assert await docs.read(document) == wanted, f"seed {seed}"


async def test_what_people_type_meanwhile_stays(world: World) -> None:
    async with connected(world.emulator.url, user=ME):
        for seed in range(ROUNDS):
            chance = random.Random(seed)
            document = world.document("Dear {{company}}, the fee is {{fee}}.\n")
            typed: list[str] = []

            def types(document: str = document, chance: random.Random = chance, typed: list[str] = typed) -> None:
                typed.append(f"<{chance.randrange(10**6)}>")
                insert = {"insertText": {"location": {"index": 1}, "text": typed[-1]}}
                world("POST", f"/v1/documents/{document}:batchUpdate", {"requests": [insert]})

            values = {"company": chance.choice(("Acme", "{{fee}}")), "fee": "7"}
            tries = await _filled(Act(f"m{seed}", None, "r"), document, values, types)
            there = await docs.read(document)
            assert tries == 2 and all(one in there for one in typed), there
            assert there.strip() == f"{''.join(reversed(typed))}Dear {values['company']}, the fee is 7."


@pytest.mark.parametrize("count", [0, 1, 4])
async def test_the_row_of_a_table_is_repeated(world: World, count: int) -> None:
    document = world("POST", "/v1/documents", {"title": "Offer"})["documentId"]
    requests: list[dict[str, Any]] = [{"insertTable": {"rows": 2, "columns": 2, "location": {"index": 1}}}]
    for index, text in ((12, "{{lines.price}} €"), (10, "{{lines.item}}"), (7, "Price"), (5, "Item")):
        requests.append({"insertText": {"location": {"index": index}, "text": text}})
    world("POST", f"/v1/documents/{document}:batchUpdate", {"requests": requests})
    rows = [{"item": f"Nut {number} 🎉", "price": number} for number in range(count)]
    async with connected(world.emulator.url, user=ME):
        await _filled(Act("rows", None, "r"), document, {"lines": docs.Rows(rows)})  # type: ignore[dict-item]
        words = (await docs.read(document)).split()
    assert words == ["Item", "Price", *" ".join(f"Nut {number} 🎉 {number} €" for number in range(count)).split()]
