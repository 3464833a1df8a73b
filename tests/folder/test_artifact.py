"""Artifacts: what steps make for people, kept once by content."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.errors import InputError
from quire.folder.base import FolderError
from quire.folder.local import LocalFolder
from tests.folder.flows import files


async def test_the_same_content_again_is_the_same_file(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    artifacts = folder.artifacts("seo_publish")

    links = [await artifacts.put("kw_1", "drafts/brief.md", b"# Brief") for _ in range(3)]

    assert links == ["Workflows/seo_publish/artifacts/drafts/kw_1/brief.md"] * 3
    assert await artifacts.get(links[0]) == b"# Brief"
    assert len(files(tmp_path)) == 1
    await folder.close()


async def test_other_content_under_the_same_name_is_kept_beside_it(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    artifacts = folder.artifacts("seo_publish")

    first = await artifacts.put("kw_1", "brief.md", b"one")
    second = await artifacts.put("kw_1", "brief.md", b"two")

    assert first == "Workflows/seo_publish/artifacts/files/kw_1/brief.md"
    assert second.startswith("Workflows/seo_publish/artifacts/files/kw_1/brief~") and second.endswith(".md")
    assert await artifacts.put("kw_1", "brief.md", b"two") == second
    assert [await artifacts.get(first), await artifacts.get(second)] == [b"one", b"two"]
    await folder.close()


async def test_no_two_records_share_an_artifact(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    artifacts = folder.artifacts("w")
    pairs = [("a_b", "c"), ("a", "b_c"), ("a/b", "c"), ("a", "b/c"), ("b", "a/c"), ("..", "c"), ("a" * 300, "c")]

    links = {await artifacts.put(record_id, name, b"x") for record_id, name in pairs}

    assert len(links) == len(pairs) == len(files(tmp_path))
    await folder.close()


@pytest.mark.parametrize("name", ["", "../x", "a//b", "/x", "a/../b", ".", "receipt_a/x"])
async def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()

    with pytest.raises(InputError, match="is not a name of an artifact"):
        await folder.artifacts("w").put("r", name, b"x")
    with pytest.raises(FolderError, match="there is no artifact"):
        await folder.artifacts("w").get(f"Workflows/w/artifacts/files/r/{name}x")
    await folder.close()
