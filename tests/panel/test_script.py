"""The Apps Script of the panel, run in node with stand-ins for Google's services, against the real server."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quire.client.client import Client
from quire.surfaces.panel.layout import PANEL_ID, TABLE_ID
from quire.surfaces.panel.script import script_of
from quire.surfaces.server import serve
from tests.conftest import missing

STAND_INS = Path(__file__).with_name("apps_script.js")


class Script:
    """The generated script, and how often it woke somebody."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    async def run(self, function: str, **world: Any) -> dict[str, Any]:
        words = [str(STAND_INS), str(self.path), function, json.dumps({"sheets": [], **world})]
        process = await asyncio.create_subprocess_exec("node", *words, stdout=subprocess.PIPE)
        out, _ = await process.communicate()
        assert process.returncode == 0
        found: dict[str, Any] = json.loads(out)
        return found

    @staticmethod
    async def send(call: dict[str, Any], **headers: str) -> int:
        """Send what the script would have sent; answers the status."""
        async with httpx2.AsyncClient() as http:
            sent = {**call["headers"], **headers}
            answer = await http.request(call["method"], call["url"], content=call["body"], headers=sent)
        return answer.status_code


@asynccontextmanager
async def served(tmp_path: Path, status: Sequence[str] = ()) -> AsyncIterator[Script]:
    if shutil.which("node") is None:
        missing("There is no node on this machine: install nodejs to run the script's tests.")
    async with Client("memory:") as client:
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(client, "127.0.0.1", 0, started=started))
        path = tmp_path / "Code.gs"
        path.write_text(script_of(client, f"http://127.0.0.1:{await started}/wake", status), encoding="utf-8")
        script = Script(path)
        client.wakers.append(script.wake)
        try:
            yield script
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_an_edit_and_a_form_wake_the_panel_and_forged_or_repeated_calls_do_not(tmp_path: Path) -> None:
    async with served(tmp_path) as script:
        found = await script.run("quireOnEdit quireOnFormSubmit quireWake")
        edit, form, menu = found["calls"]
        assert [await script.send(edit), await script.send(form)] == [202, 202] and script.woken == 2

        forged = {"X-Quire-Signature": "0" * 64}
        late = {"X-Quire-Time": str(int(edit["headers"]["X-Quire-Time"]) - 1000)}
        other = {**menu, "body": '{"why":"other"}'}
        codes = [await script.send(menu, **forged), await script.send(menu, **late), await script.send(other)]
        assert codes == [403, 403, 403] and await script.send(edit) == 409
        assert script.woken == 2


async def test_the_menu_types_words_into_the_selected_rows_and_ticks_the_box(tmp_path: Path) -> None:
    header = ["record_id", "status", "command", "mine"]
    table = {"id": TABLE_ID, "values": [header, ["a", "", "", "x"], ["b", "", "", "y"], ["c", "", "", "z"]]}
    panel = {"id": PANEL_ID, "values": [["", "", ""], ["STOP", False, ""]]}
    async with served(tmp_path) as script:
        sheets = [{**table, "selected": [[1, 2], [4, 4]]}, panel]
        done = await script.run("onOpen quireInstall quireApprove quireHalt", sheets=sheets)
        elsewhere = await script.run("quireCancel", sheets=[{**panel, "selected": [[1, 2]]}])

        assert [row[2] for row in done["sheets"][0]["values"]] == ["command", "APPROVE", "", "APPROVE"]
        assert [row[3] for row in done["sheets"][0]["values"]] == ["mine", "x", "y", "z"]
        assert done["sheets"][1]["values"][1] == ["STOP", True, ""]
        assert [await script.send(call) for call in done["calls"]] == [202, 202] and script.woken == 2
        text = script.path.read_text(encoding="utf-8")
        assert all(f"function {name}(" in text for name in done["menu"]) and len(done["menu"]) == 7
        assert done["triggers"] == [["quireOnEdit", "edit"], ["quireOnFormSubmit", "form"]]
        assert elsewhere["calls"] == [] and "Select rows of the state table" in elsewhere["alerts"][0]


@pytest.mark.parametrize("given", [{}, {"X-Quire-Time": "x", "X-Quire-Nonce": "short", "X-Quire-Signature": "1"}])
async def test_an_unsigned_call_is_refused(given: dict[str, str]) -> None:
    from quire.surfaces.server import app

    async with Client("memory:") as client:
        transport = httpx2.ASGITransport(app(client), client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            answer = await http.post("/wake", json={}, headers=given)
    assert answer.status_code == 401
