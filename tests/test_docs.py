"""What the pages show runs, what they name is there, and what is made from the code is as the code says."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import quire
from quire.errors import QuireError
from quire.surfaces.alerts import channel
from quire.surfaces.cli import cli, error_reference
from quire.surfaces.cli.beside import checked_telemetry
from quire.surfaces.config import load
from quire.surfaces.server.auth import oidc
from tests.pages import NOT_HERE, Reader, blocks, commands

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Pages of other parts, which have tests of their own, and pages that are made.
OTHERS = frozenset(
    {
        *("alerts.md", "benchmarks-sheets.md", "chat.md", "deploy.md", "missions.md", "server.md", "telemetry.md"),
        *("panel.md", "benchmarks.md", "cli.md", "errors.md", "transitions.md", "orders.md"),
    }
)
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.glob("*.md") if page.name not in OTHERS)]
GUIDES = sorted((DOCS / "guides").glob("*.md"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to follow a page in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("path", [*PAGES, *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_can_be_followed_from_top_to_bottom(
    desk: Path, path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "DATABASE_URL" in path.read_text(encoding="utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))

    with Reader() as reader:
        reader.follow(path)


@pytest.mark.parametrize("name", ["alerts.md", "chat.md", "missions.md", "server.md", "telemetry.md"])
def test_what_a_page_of_another_part_shows_is_taken_by_the_code(desk: Path, name: str) -> None:
    """These pages need a provider, a chat or a model; what they show is read as it would be there."""
    shown = 0
    for block in blocks(DOCS / name):
        shown += block.kind in ("toml", "json", "yaml", "python", "console")
        if block.kind == "toml":
            (desk / "quire.toml").write_text(block.text)
            config = load(start=desk)
            environ = dict.fromkeys(re.findall(r"\$(\w+)", block.text), "https://example.org/a-long-secret")
            channel.read(config.alerts, environ)
            oidc.read(config.oidc, config.public_url, environ)
            checked_telemetry(config.telemetry)
        elif block.kind == "json":
            json.loads(block.text)
        elif block.kind == "yaml":
            assert yaml.safe_load(block.text), name
        elif block.kind == "python":
            tree = ast.parse(block.text)
            imports: list[ast.stmt] = [
                line
                for line in tree.body
                # The services for Google ADK have an environment of their own, and tests there.
                if isinstance(line, ast.Import | ast.ImportFrom) and getattr(line, "module", "") != "quire_adk"
            ]
            exec(compile(ast.Module(imports, []), name, "exec"), {})
        elif block.kind == "console":
            for command in commands(block.text):
                words = shlex.split(command.typed)
                if words[0] == "quire":
                    told = CliRunner().invoke(cli, [*words[1:3], "--help"])
                    assert told.exit_code == 0, command.typed
                    assert all(word in told.output for word in words if word.startswith("--")), command.typed
    assert shown


def test_a_reader_notices_what_is_not_so(desk: Path) -> None:
    page = desk / "page.md"
    page.write_text("```console\n$ quire config\nledger … nowhere.db\n```\n")
    with Reader() as reader, pytest.raises(AssertionError, match=r"page.md, line 1: 'quire config' does not tell"):
        reader.follow(page)
    page.write_text("```console\n$ quire show nope\n```\n")
    with Reader() as reader, pytest.raises(AssertionError, match="'quire show nope' ends with 4"):
        reader.follow(page)
    page.write_text("\n```python\nassert 1 == 2\n```\n")
    with Reader() as reader, pytest.raises(AssertionError, match=r"page.md, line 2"):
        reader.follow(page)


def test_every_guide_does_something_and_stands_in_the_list() -> None:
    listed = (DOCS / "guides/README.md").read_text()

    for guide in GUIDES:
        if guide.name == "README.md":
            continue
        assert f"({guide.name})" in listed, guide.name
        typed = [
            command.typed for block in blocks(guide) if block.kind == "console" for command in commands(block.text)
        ]
        runs = [block for block in blocks(guide) if block.kind == "python" and not block.text.startswith("# ")]
        scripts = [words for words in typed if words.startswith("python3 ")]
        assert runs or scripts or sum(not words.startswith(tuple(NOT_HERE)) for words in typed) >= 3, guide.name


def test_every_page_that_is_named_exists() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages
        for name in re.findall(r"`((?:docs|examples|src|tests)/[\w./-]+\.\w+)`", page.read_text())
        if not (ROOT / name).exists()
    ]
    missing += [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages
        for name in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / name).exists()
    ]

    assert missing == []


def test_the_reference_of_errors_is_up_to_date_and_each_says_what_to_do() -> None:
    assert (DOCS / "errors.md").read_text() == error_reference.markdown(), (
        "run: python -m quire.surfaces.cli.error_reference > docs/errors.md"
    )
    silent = [kind.__name__ for kind in error_reference.classes()[1:] if not error_reference.told(kind)[1]]
    assert silent == []


def test_every_error_that_users_see_is_in_the_reference() -> None:
    def below(kind: type[QuireError]) -> set[type[QuireError]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    named = set(error_reference.classes())
    of_quire = {kind for kind in below(QuireError) if kind.__module__ == "quire.errors"}
    assert of_quire <= named


def test_every_public_name_is_told_of_in_the_docs() -> None:
    """``quire.__all__``: what a user may import stands on some page or in an example."""
    text = "".join(page.read_text() for page in [ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/*.py")])

    assert [name for name in quire.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_one_page_says_how_to_install() -> None:
    """Nothing named quire is in the package index: whoever typed such a line would install a stranger's package."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    printed = {
        page.relative_to(ROOT).as_posix() for page in pages if re.search(r"install '?quire\b|quire\[", page.read_text())
    }

    # The decision is of another time, and install.md says what not to type.
    assert printed == {"docs/install.md", "docs/decisions/016-tests-run-with-what-google-adk-allows.md"}


def test_code_with_await_at_its_top_stands_on_pages_that_say_where_it_runs() -> None:
    """Pasted into a file it is a SyntaxError."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    for page in pages:
        text = page.read_text()
        for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            try:
                compile(code, page.name, "exec")
            except SyntaxError:
                compile(code, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                assert "goes into `python -m asyncio`" in text, page.name
