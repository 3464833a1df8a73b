"""The commands in the heads of the examples, typed as printed, in an empty directory with the examples in it."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.pages import Block, reading

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADS = [path for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in ("__init__", "api")]


def head(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text is not None
    return text


@pytest.mark.parametrize("path", HEADS, ids=lambda path: path.stem)
def test_an_example_works_with_the_commands_in_its_head(path: Path, fresh: Path, tmp_path: Path) -> None:
    if path.stem == "tracker" and not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
        missing("there is no Chromium on this machine")
    desk = tmp_path / "desk"
    shutil.copytree(EXAMPLES, desk / "examples")
    typed = [line for line in head(path).splitlines() if line.startswith(("quire ", "pip "))]
    assert typed[-2 if len(typed) > 2 else 0].startswith("quire "), "the head shows how to run it"

    text = "".join(f"$ {line}\n" for line in typed)
    with reading(text, fresh, desk) as reader:
        reader.do(Block("console", text, 1))
        assert reader.typed == sum(line.startswith("quire ") for line in typed) >= 2
