"""What stands around the code: the hosted workflow, the templates for issues, the release."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.wheels import ROOT
from tools.release import address, linked

TARGETS = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_hosted_workflow_calls_the_same_targets() -> None:
    told = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    typed = [step["run"] for job in told["jobs"].values() for step in job["steps"] if "run" in step]

    assert "make test" in typed
    assert {word for line in typed for word in re.findall(r"make ([\w-]+)", line)} <= TARGETS
    assert told["jobs"]["test"]["defaults"]["run"]["working-directory"] == "quire"  # the name that a clone has
    assert told["jobs"]["test"]["strategy"]["matrix"]["python"][0] == "3.11"


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_a_template_for_issues_is_whole(path: Path) -> None:
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert set(told) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(told)
    ids = [field["id"] for field in told["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in told["body"])


def test_every_target_is_explained_at_the_head_of_the_makefile() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    head = text[: text.index("PYTHON  ?=")]
    inner = {"help", "format", "browser", "constraints"}
    assert [target for target in sorted(TARGETS - inner) if f"make {target}" not in head] == []


def release(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/release.py", *words]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This working tree as a repository of its own, with one commit."""
    made = tmp_path / "quire"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("this is not a clone")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, made / name)
    author = ["-c", "user.name=Quire", "-c", "user.email=quire@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All"]):
        subprocess.run(["git", *author, *words], cwd=made, check=True)
    return made


@pytest.mark.slow
def test_a_release_is_built_and_tried_and_says_what_it_would_publish(clone: Path) -> None:
    subprocess.run(["git", "remote", "add", "origin", "git@example.org:team/quire.git"], cwd=clone, check=True)

    done = release(clone, "0.2.0")

    assert done.returncode == 0, done.stderr
    assert "quire-0.2.0-py3-none-any.whl" in done.stdout and "quire-0.2.0.tar.gz" in done.stdout
    assert "would do: git tag v0.2.0" in done.stdout
    assert re.search(r"would do: uv publish .*quire-0\.2\.0-py3-none-any\.whl", done.stdout)
    assert "links in the archives: https://example.org/team/quire\n" in done.stdout
    assert done.stdout.endswith("nothing was published: add --publish\n")
    tags = subprocess.run(["git", "tag"], cwd=clone, capture_output=True, text=True, check=True).stdout
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert (tags, status.stdout) == ("", "")


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("git@example.org:team/quire.git", "https://example.org/team/quire"),
        ("https://token@example.org/team/quire.git", "https://example.org/team/quire"),
        ("ssh://git@example.org/team/quire", "https://example.org/team/quire"),
        ("/srv/git/quire.git", ""),
    ],
)
def test_where_people_read_the_repository(remote: str, url: str) -> None:
    assert address(remote) == url


def test_an_archive_has_whole_links_and_names_the_repository(tmp_path: Path) -> None:
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)

    linked(tmp_path, "0.2.0", "https://example.org/team/quire")

    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "](docs/" not in text
    assert "(https://example.org/team/quire/raw/v0.2.0/docs/picture.svg)" in text
    assert "(https://example.org/team/quire/blob/v0.2.0/docs/quickstart.md)" in text
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Repository"] == "https://example.org/team/quire"


def test_the_sources_name_no_address_that_does_not_exist() -> None:
    """Nobody hosts this repository yet: the release takes its addresses from the remote of the clone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "urls" not in project


def test_what_cannot_be_released_is_refused_in_a_sentence(clone: Path) -> None:
    assert "is not a version like 0.2.0" in release(clone, "next").stderr
    subprocess.run(["git", "tag", "v0.3.0"], cwd=clone, check=True)
    assert "there is a tag v0.3.0 already" in release(clone, "0.3.0").stderr
    (clone / "new.txt").touch()
    refused = release(clone, "0.4.0")
    assert refused.returncode == 1 and "?? new.txt" in refused.stderr
