"""Releases Quire: ``python tools/release.py 0.2.0`` says what it would do; with ``--publish`` it does it.

It works in a clone of the last commit, so that nothing which lies about in the working tree is released. It writes the
version into the files that name it, turns *Unreleased* in the changelog into the version, builds the wheels and source
archives, and tries each wheel in an empty environment. Only then it publishes: the commit with its tag, and the
archives with ``uv publish``, whose own settings say where and with which token.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Distributions of this repository, each with the files that name its version.
DISTRIBUTIONS = {
    ".": ("pyproject.toml", "src/quire/__init__.py", "docs/install.md"),
    "packages/hectograph": (),
    "packages/quire-adk": (),
}
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


class Refused(Exception):
    """This cannot be released; the sentence says why."""


def run(words: Sequence[str | Path], where: Path) -> str:
    done = subprocess.run(words, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def written(clone: Path, version: str, today: str) -> None:
    """Write the version and the date of its changelog into the clone."""
    before = re.search(r'^version = "(.*)"$', (clone / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert before is not None
    for name in DISTRIBUTIONS["."]:
        text = (clone / name).read_text(encoding="utf-8")
        if before[1] not in text:
            raise Refused(f"{name} does not name the version {before[1]}")
        (clone / name).write_text(text.replace(before[1], version), encoding="utf-8")
    changelog = clone / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    found = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None or not found[1].strip():
        raise Refused("CHANGELOG.md says nothing under '## Unreleased'")
    if f"## {version} " in text:
        raise Refused(f"CHANGELOG.md has the version {version} already")
    changelog.write_text(text.replace("## Unreleased\n", f"## {version} ({today})\n", 1), encoding="utf-8")


def address(remote: str) -> str:
    """Return where people read the repository that a remote names; nothing if it is only a path."""
    found = re.fullmatch(r"(?:https?://(?:[^@/]*@)?|ssh://git@|git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", remote.strip())
    return f"https://{found[1]}/{found[2]}" if found else ""


def linked(clone: Path, version: str, url: str) -> None:
    """Name the repository in the metadata, and make the links of the README whole: it is read in the index, too."""
    project = clone / "pyproject.toml"
    urls = f"""[project.urls]
Repository = "{url}"
Documentation = "{url}/blob/v{version}/docs/quickstart.md"
Issues = "{url}/issues"
Changelog = "{url}/blob/v{version}/CHANGELOG.md"

[project.scripts]"""
    project.write_text(project.read_text(encoding="utf-8").replace("[project.scripts]", urls, 1), encoding="utf-8")
    readme = clone / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{url}/raw/v{version}/", text)
    text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{url}/blob/v{version}/", text)
    readme.write_text(text, encoding="utf-8")


def built(clone: Path) -> list[Path]:
    """Build the archives of every distribution, and try the wheels in empty environments."""
    for folder in DISTRIBUTIONS:
        run([sys.executable, "-m", "hatchling", "build", "-d", clone / "dist"], clone / folder)
    for wheel in (clone / "dist").glob("*.whl"):
        name = wheel.name.partition("-")[0]
        if name == "quire_adk":  # its requirements hold back those of Quire; its own tests install it
            continue
        uv = Path(sys.executable).with_name("uvx")
        run([uv, "--isolated", "--from", wheel, name, "--version" if name == "quire" else "--help"], clone)
    return sorted((clone / "dist").glob("*.*"))


def release(version: str, root: Path, *, publish: bool, today: str) -> list[str]:
    """Do all that can be taken back, then say, or do, what cannot. Return the lines that are said."""
    if not _VERSION.fullmatch(version):
        raise Refused(f"{version!r} is not a version like 0.2.0")
    if changed := run(["git", "status", "--porcelain"], root):
        raise Refused(f"commit or remove what is not committed first:\n{changed}")
    if run(["git", "tag", "--list", f"v{version}"], root).strip():
        raise Refused(f"there is a tag v{version} already")
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        clone = Path(folder) / "quire"
        run(["git", "clone", "--quiet", root, clone], root)
        written(clone, version, today)
        committed = ["git", "commit", "--quiet", "--all", "--message", f"Version {version}"]
        if publish:
            run(committed, clone)
        known = "origin" in run(["git", "remote"], root).split()
        remote = run(["git", "remote", "get-url", "origin"], root).strip() if known else str(root)
        if url := address(remote):
            linked(clone, version, url)  # after the commit: only the archives need whole links
        archives = built(clone)
        names = [path.name for path in archives]
        said = [
            f"built and tried: {', '.join(names)}",
            f"links in the archives: {url or 'none, there is no hosted origin'}",
        ]
        # The index cannot be taken back, so it comes last.
        steps: list[Sequence[str | Path]] = [
            ["git", "tag", f"v{version}"],
            ["git", "push", "--quiet", remote, f"HEAD:refs/heads/release-{version}", f"v{version}"],
            [Path(sys.executable).with_name("uv"), "publish", *archives],
        ]
        for words in steps:
            if publish:
                run(words, clone)
            shown = " ".join(word.name if isinstance(word, Path) else word for word in words)
            said.append(("did: " if publish else "would do: ") + shown)
        said.append(f"then merge the branch release-{version}" if publish else "nothing was published: add --publish")
        return said


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("version")
    words.add_argument("--publish", action="store_true", help="do it; without this it only says what it would do")
    given = words.parse_args()
    try:
        said = release(given.version, ROOT, publish=given.publish, today=datetime.now(UTC).date().isoformat())
    except Refused as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    sys.stdout.write("\n".join([*said, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
