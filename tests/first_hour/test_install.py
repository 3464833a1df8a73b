"""The page that says how to install, followed from the clone to a wheel in an empty environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.pages import reading
from tests.wheels import ROOT, settings_of_pip

PAGE = ROOT / "docs" / "install.md"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_quire_is_installed_as_the_page_says(tmp_path: Path) -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False).returncode:
        missing("this is not a clone: there is nothing to clone again")
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(" REPOSITORY ") == 1
    page = tmp_path / "install.md"
    page.write_text(text.replace(" REPOSITORY ", f" {ROOT} "), encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()

    # No environment is active: what is typed makes one.
    with reading("", tmp_path / "none", empty, not_here={}, variables=settings_of_pip(os.environ)) as reader:
        reader.follow(page)
        code, said = reader.answer("which quire; python -c 'import quire; print(quire.__file__)'")

    assert (code, said.split()) == (0, [f"{empty}/quire/.venv/bin/quire", f"{empty}/quire/src/quire/__init__.py"])
