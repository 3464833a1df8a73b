"""The pages that say where a rule or a new line belongs name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "quire"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/protocol.md"])
def test_every_path_is_there(page: str) -> None:
    paths = re.findall(r"`([\w./]+/(?:[\w.]+\.py)?)`", (ROOT / page).read_text(encoding="utf-8"))

    assert len(paths) > 10
    missing = [path for path in paths if not ((SRC / path).exists() or (ROOT / path).exists())]
    assert not missing, f"{page} names files that are not there: {missing}"


def test_every_package_has_a_line() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")}

    assert packages == {name for name in packages if f"`{name}/`" in page}
