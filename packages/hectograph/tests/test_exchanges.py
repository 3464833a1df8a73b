"""What Google documents, and what others recorded and measured, as exchanges: the emulator has to answer so.

Each exchange says where its statement comes from. Its steps are sent over HTTP, one after the other, to an emulator
that is reset before. ``{name}`` stands for what an earlier step kept. Of an answer only what is written is compared; a
text that begins with ``re:`` is a pattern, and ``any`` stands for anything. ``lacks`` names what must not be there.
``{"repeat": [text, n]}`` is a long text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hectograph import Emulator

FOLDER = Path(__file__).parent / "exchanges"
EXCHANGES = {
    f"{path.stem}: {exchange['name']}": exchange
    for path in sorted(FOLDER.glob("*.json"))
    for exchange in json.loads(path.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


def sent(emulator: Emulator, step: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    method, _, path = step["send"].partition(" ")
    address = urlsplit(emulator.url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=30)
    headers = {"Content-Type": "application/json", **step.get("headers", {})}
    if "token" in step:
        headers["Authorization"] = f"Bearer {step['token']}"
    try:
        connection.request(method, path, json.dumps(step["body"]) if "body" in step else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(text) if text else None
    finally:
        connection.close()


def filled(value: Any, kept: dict[str, Any]) -> Any:
    """Put what was kept into a step; a text that is nothing but one name becomes that value, of its own type."""
    if isinstance(value, str):
        whole = re.fullmatch(r"\{(\w+)\}", value)
        if whole and whole[1] in kept:
            return kept[whole[1]]
        return re.sub(r"\{(\w+)\}", lambda match: str(kept.get(match[1], match[0])), value)
    if isinstance(value, dict) and set(value) == {"repeat"}:
        return str(value["repeat"][0]) * int(value["repeat"][1])
    if isinstance(value, list):
        return [filled(item, kept) for item in value]
    return {key: filled(item, kept) for key, item in value.items()} if isinstance(value, dict) else value


def at(answer: Any, path: str) -> Any:
    """Return what stands at a path like ``sheets.0.properties``; None if nothing stands there."""
    for part in path.split("."):
        if isinstance(answer, list):
            answer = answer[int(part)] if int(part) < len(answer) else None
        else:
            answer = answer.get(part) if isinstance(answer, dict) else None
    return answer


def difference(want: Any, got: Any, where: str = "") -> str:
    """Say where an answer differs from what is written; nothing if it does not."""
    if want == "any":
        return ""
    if isinstance(want, dict) and isinstance(got, dict):
        return "".join(difference(value, got.get(key), f"{where}.{key}") for key, value in want.items())
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return "".join(
            difference(one, other, f"{where}[{place}]")
            for place, (one, other) in enumerate(zip(want, got, strict=True))
        )
    if isinstance(want, str) and want.startswith("re:"):
        return (
            "" if isinstance(got, str) and re.fullmatch(want[3:], got) else f"{where}: {got!r} is not like {want!r}\n"
        )
    return "" if want == got and type(want) is type(got) else f"{where}: {got!r} is not {want!r}\n"


@pytest.mark.parametrize("name", EXCHANGES)
def test_the_emulator_answers_as_google_does(running: Emulator, name: str) -> None:
    kept: dict[str, Any] = {}
    assert sent(running, {"send": "POST /emulator/reset"})[0] == 200
    for place, step in enumerate(EXCHANGES[name]["steps"]):
        for number in range(step.get("times", 1)):
            asked = filled(step, kept | {"n": number})
            status, headers, got = sent(running, asked)
            expected = asked["status"] if isinstance(asked["status"], list) else [asked["status"]]
            assert status in expected, f"step {place}: {status}: {got}"
        assert difference(asked.get("answer", {}), got) == "", f"step {place}: {got}"
        assert [path for path in asked.get("lacks", ()) if at(got, path) is not None] == []
        assert [name for name in asked.get("no_headers", ()) if name in headers] == []
        for path, name_of in step.get("above", {}).items():
            assert int(at(got, path)) > int(kept[name_of])
        for name_of, path in step.get("keep", {}).items():
            kept[name_of] = at(got, path)
            assert kept[name_of] is not None, f"step {place}: nothing stands at {path}: {got}"


def test_every_exchange_says_where_it_comes_from() -> None:
    assert len(EXCHANGES) > 30
    assert [name for name, exchange in EXCHANGES.items() if not exchange["source"] or not exchange["says"]] == []


def test_a_difference_is_noticed() -> None:
    assert difference({"a": [{"b": "re:x+"}]}, {"a": [{"b": "xx", "c": 1}]}) == ""
    assert difference({"a": [{"b": "re:x+"}]}, {"a": [{"b": "y"}]}) != ""
    assert difference({"a": []}, {"a": [1]}) != ""
    assert difference({"a": 1}, {}) != ""
    assert difference({"a": True}, {"a": 1}) != ""
