"""What is said of each method holds: a method is played, or answers 501 with its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emulator_direct import Direct
from hectograph.__main__ import main
from hectograph.apis import VERSIONS

PAGE = Path(__file__).resolve().parents[1] / "METHODS.md"


def path_of(pattern: str) -> str:
    """Return an address that a method's pattern takes."""
    shape = re.sub(r"\(\?P<\w+>((?:[^()]|\([^()]*\))*)\)", lambda match: _value(match.group(1)), pattern)
    return shape.replace("/?:", ":").replace("\\", "")


def _value(shape: str) -> str:
    return shape.replace("[^/]+", "none").replace(".+", "none").replace(".*", "none")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_method_answers_501_exactly_if_it_is_not_played(version: str) -> None:
    api = Direct()
    service = api.world.services[version]
    wrong = []
    for method in service.api.methods:
        path = path_of(method.pattern.pattern)
        status, raw, _ = api.raw(method.verb, path, b"{}")
        said = json.loads(raw)["error"]["message"] if status == 501 else ""
        if (status == 501) == service.plays(method.name):
            wrong.append((method.name, path, status))
        if status == 501:
            assert service.kind(method) in said
    assert wrong == []


def test_the_page_of_methods_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--methods"]) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, "hectograph --methods > METHODS.md"
