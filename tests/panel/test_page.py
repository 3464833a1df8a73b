"""The page about the panel can be followed from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import Reader

PAGE = Path(__file__).parents[2] / "docs" / "panel.md"


def test_the_page_about_the_panel_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Reader() as reader:
        reader.follow(PAGE)
