"""Tools ``google_*`` of a chat: only those that are named, done by a worker, and released by people if they leave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hectograph import Emulator
from quire.client.client import Client
from quire.errors import InputError, QuireError
from quire.model.record import Status
from quire.surfaces.chat.mcp.google import offered
from quire.surfaces.chat.mcp.server import called
from quire.surfaces.chat.mcp.tools import TOOLS, Desk, tools_of
from quire.surfaces.server.auth.tokens import Role
from quire.workspace import connected, single
from tests.surfaces.google.conftest import ANN

CLIENT = "client@example.com"


def left(google: Emulator) -> list[Any]:
    found: list[Any] = json.loads(google.call("GET", "/emulator/outbox").body)["left"]
    return found


async def test_what_leaves_is_parked_and_released_with_the_hash_and_the_rest_is_done(google: Emulator) -> None:
    async with connected(google.url, user=ANN), Client("memory:", workflows=[single.google], who="bob") as client:
        desk = Desk(client, Role.OPERATOR, google=["mail", "folder"])
        made = await called(desk, "google_folder", {"name": "Acme", "id": "f1"})
        mail = {"to": [CLIENT], "subject": "Hello", "text": "Welcome.", "id": "m1"}
        parked = await called(desk, "google_mail", mail)
        assert (made["state"], parked["state"]) == ("started f1", "needs approval m1")
        await client.work()
        assert (await client.get("f1")).status is Status.DONE and left(google) == []

        shown = await called(desk, "show", {"record_id": "m1"})
        digest = shown.get("question", shown).get("hash") or shown["asks"][0]["hash"]
        await called(desk, "approve", {"record_id": "m1", "hash": digest})
        await client.work()
        assert (await client.get("m1")).status is Status.DONE and len(left(google)) == 1


async def test_only_named_acts_are_offered_and_to_operators_only(google: Emulator) -> None:
    async with Client("memory:", workflows=[single.google]) as client:
        assert tools_of(Desk(client, Role.ADMIN)).keys() == TOOLS.keys()
        assert tools_of(Desk(client, Role.ADMIN, google=["draft"])).keys() - TOOLS.keys() == {"google_draft"}
        with pytest.raises(QuireError, match="there is no tool 'google_mail'"):
            await called(Desk(client, Role.ADMIN, google=["draft"]), "google_mail", {})
        with pytest.raises(QuireError, match="google_draft takes an operator"):
            await called(Desk(client, Role.VIEWER, google=["draft"]), "google_draft", {})
    with pytest.raises(InputError, match=r"\[mcp\] google: there is no act 'mial'; did you mean 'mail'"):
        offered(["mial"])
