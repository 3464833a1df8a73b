"""The command that a message prints for an extra works for the installation that prints it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import quire
from quire import installing

PACKAGE = Path(quire.__file__).parent


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///shop/quire", "dir_info": {"editable": True}}, "pip install -e '/shop/quire[web]'"),
        ({"url": "file:///shop/quire", "dir_info": {}}, "pip install '/shop/quire[web]'"),
        (
            {"url": "file:///a%20b/quire-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install '/a b/quire-0.1.0-py3-none-any.whl[web]'",
        ),
        (
            {"url": "https://example.org/quire", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'quire[web] @ git+https://example.org/quire@abc'",
        ),
        (
            {"url": "https://example.org/quire-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'quire[web] @ https://example.org/quire-0.1.0-py3-none-any.whl'",
        ),
    ],
)
def test_an_extra_comes_from_where_quire_came_from(
    origin: dict[str, Any], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return json.dumps(origin) if name == "direct_url.json" else None

    monkeypatch.setattr(installing, "distribution", lambda name: Installed())

    assert installing.install("web") == command


@pytest.mark.parametrize("extra", ["web", "postgres", "all"])
def test_without_a_known_origin_no_package_of_that_name_is_named(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = distribution("quire")

    class Installed:
        requires = real.requires

        def read_text(self, name: str) -> str | None:
            return None

    monkeypatch.setattr(installing, "distribution", lambda name: Installed())
    command = installing.install(extra)

    assert command.startswith("pip install ") and "quire" not in command
    assert ("'psycopg[binary]" in command) == (extra in ("postgres", "all"))
    assert ("'uvicorn" in command) == (extra in ("web", "all"))


def test_no_message_names_a_package_of_an_index_that_nobody_has_registered() -> None:
    named = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if path.name != "installing.py"
        and re.search(r"install [^\n]*\b(quire|hectograph)\b", line)
        and "packages/" not in line
    ]
    assert named == []


def test_every_extra_that_is_printed_is_declared() -> None:
    declared = distribution("quire").metadata.get_all("Provides-Extra") or []
    code = (
        "import ast, pathlib, quire\n"
        "for path in pathlib.Path(quire.__file__).parent.rglob('*.py'):\n"
        "    for node in ast.walk(ast.parse(path.read_text())):\n"
        "        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'install':\n"
        "            print(*(word.value for word in node.args if isinstance(word, ast.Constant)))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert len(printed) > 10
    assert set(printed) <= set(declared)
