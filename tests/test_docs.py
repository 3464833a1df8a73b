"""What the pages show runs, what they name is there, and what is made from the code is as the code says."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

import quire
from docs.tools import configuration, documentation, errors, llms, reference
from quire.errors import DefinitionError, InputError, LedgerError, QuireError
from quire.surfaces.alerts import channel
from quire.surfaces.cli.run.beside import checked_telemetry
from quire.surfaces.config import KEYS, load
from quire.surfaces.server.auth import oidc
from tests.pages import NO_PLACE, NOT_HERE, Block, blocks, commands, file_name, reading

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Pages that are made from the code or from measurements; other tests compare them with what they are made from.
MADE = {
    "benchmarks.md",
    "benchmarks-sheets.md",
    "cli.md",
    "errors.md",
    "orders.md",
    "reference.md",
    "transitions.md",
}
PAGES = [
    *(ROOT / "README.md", ROOT / "packages/hectograph/README.md", ROOT / "packages/quire-adk/README.md"),
    *sorted(page for page in DOCS.glob("*.md") if page.name not in MADE and page.name not in NO_PLACE),
]
PAGES += sorted((DOCS / "workspace").glob("*.md"))
GUIDES = sorted((DOCS / "guides").glob("*.md"))


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """An empty directory to follow a page in."""
    empty = tmp_path / "desk"
    empty.mkdir()
    return empty


@pytest.mark.parametrize("path", [*PAGES, *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_can_be_followed_from_top_to_bottom(
    fresh: Path, desk: Path, path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_text(encoding="utf-8")
    if "DATABASE_URL" in text:
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))

    with reading(text, fresh, desk) as reader:
        reader.follow(path)


@pytest.mark.parametrize("path", [*PAGES, *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_data_that_a_page_shows_is_taken_by_the_code(desk: Path, path: Path) -> None:
    """Also data that is not a file of the page: it is read as it would be in its place."""
    for block in blocks(path):
        if block.kind == "toml":
            (desk / "quire.toml").write_text(block.text)
            config = load(start=desk)
            environ = dict.fromkeys(re.findall(r"\$(\w+)", block.text), "https://example.org/a-long-secret")
            channel.read(config.alerts, environ)
            oidc.read(config.oidc, config.public_url, environ)
            checked_telemetry(config.telemetry)
        elif block.kind == "json":
            json.loads(block.text.partition("\n")[2] if file_name(block) else block.text)
        elif block.kind == "yaml":
            assert yaml.safe_load(block.text), path.name


def test_every_exception_has_a_reason_and_a_use() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("packages/*/README.md")]
    marked = {
        page.name: reason
        for page in pages
        for reason in re.findall(r"^<!-- not here: (.*?) -->$", page.read_text(), re.MULTILINE)
    }
    assert set(marked) == {"missions.md", "README.md"}, "the fewer the better: what can run, runs"
    typed = [
        command.typed
        for page in pages
        for block in blocks(page)
        if block.kind == "console" and block.here
        for command in commands(block.text)
    ]
    unused = [beginning for beginning in NOT_HERE if not any(line.startswith(beginning) for line in typed)]
    assert unused == []
    kinds = {block.kind for page in pages if page.name not in NO_PLACE for block in blocks(page)}
    assert kinds <= {"python", "console", "toml", "yaml", "json", "csv", "jsonl", "text"}, (
        "a block is named by its kind"
    )


@pytest.mark.parametrize(
    ("text", "noticed"),
    [
        ("```console\n$ quire config\nledger … nowhere.db\n```\n", r"line 1: 'quire config' does not say"),
        ("\n```console\n$ quire show nope\n```\n", r"line 2: 'quire show nope' ends with 4"),
        ("```console\n$ cd /; quire show nope   # exit 3: not there\n```\n", r"line 1: .* ends with 4"),
        ("\n```python\nassert 1 == 2\n```\n", r"line 2: .*AssertionError"),
        ("\n```python\nimport tests\n```\n", r"line 2: .*No module named 'tests'"),
    ],
)
def test_a_reader_notices_what_is_not_so(fresh: Path, desk: Path, text: str, noticed: str) -> None:
    page = desk / "page.md"
    page.write_text(text)
    with reading(text, fresh, desk) as reader, pytest.raises(AssertionError, match=f"(?s)page.md, {noticed}"):
        reader.follow(page)


def test_a_reader_notices_a_command_that_does_not_go_on(fresh: Path, desk: Path) -> None:
    with pytest.raises(AssertionError, match="ends without saying 'worker'"), reading("", fresh, desk) as reader:
        reader.do(Block("console", "$ quire up --nothing\nworker\n", 1))


def test_a_page_has_one_shell_and_one_python(fresh: Path, desk: Path) -> None:
    page = desk / "page.md"
    page.write_text(
        "```python\n# names.py\nname = 'Ann'\n```\n"
        "```python\nfrom names import name\n```\n"
        "```console\n$ export NAME=Bob; mkdir inner; cd inner\n$ echo $NAME in $(basename $PWD)\nBob in inner\n"
        "$ python3 -c 'import quire; print(quire.__file__)'\n… fresh/environment …\n$ which quire\n… fresh …\n```\n"
        "```python\nimport asyncio\nawait asyncio.sleep(0)\nassert name == 'Ann'\n```\n"
    )
    with reading("", fresh, desk) as reader:
        reader.follow(page)
    assert reader.typed == 4


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


def test_the_page_about_the_configuration_is_up_to_date_and_whole(desk: Path) -> None:
    assert (DOCS / "configuration.md").read_text() == configuration.markdown(), (
        "run: python docs/tools/configuration.py"
    )
    (desk / "quire.toml").write_text(configuration.EXAMPLE)
    assert [key.name for key in KEYS if load(start=desk).source(key.name) != str(desk / "quire.toml")] == []
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    # Those that Quire sets itself for its own processes and scripts, that the shell sets, and that tests are given.
    inner = re.compile(r"QUIRE_(COMPLETE|CONFIG|DOCTOR|HEAD|OPENED|TEST_POSTGRES)")
    keys = {f"QUIRE_{key.name.upper()}" for key in KEYS}
    missing = configuration.named(sources) - keys - set(configuration.VARIABLES)
    assert {name for name in missing if not inner.match(name)} <= {"QUIRE_OIDC_SECRET", "QUIRE_CHAT_NAME"}


def test_the_reference_is_up_to_date_and_every_name_has_an_example() -> None:
    assert (DOCS / "reference.md").read_text() == reference.markdown(), "run: python docs/tools/reference.py"
    # Constants have none.
    silent = [name for name in reference.silent() if not isinstance(getattr(quire, name), dict)]
    assert silent == []


def test_what_is_raised_is_found_in_the_code() -> None:
    assert DefinitionError in reference.raised(quire.Workflow.step)
    assert {InputError, LedgerError} <= set(reference.raised(quire.aopen))


def test_no_link_of_the_site_leads_nowhere_and_every_page_is_in_its_navigation(tmp_path: Path) -> None:
    pages = documentation.assembled(tmp_path / "site")

    assert documentation.dead_links(pages) == []
    told = yaml.safe_load((tmp_path / "site" / "mkdocs.yml").read_text())
    listed = {page for part in told["nav"][1:] for entries in part.values() for page in entries} | {"index.md"}
    there = {page.relative_to(pages).as_posix() for page in pages.rglob("*.md")}
    assert {page for page in there - listed if not page.startswith(("packages/", "benchmarks/"))} == set()
    assert listed <= there


def test_the_list_of_pages_for_programs_is_up_to_date() -> None:
    assert (ROOT / "llms.txt").read_text() == llms.text(), "run: python docs/tools/llms.py"


def test_the_reference_of_errors_is_up_to_date_and_each_says_what_to_do() -> None:
    assert (DOCS / "errors.md").read_text() == errors.markdown(), "run: python docs/tools/errors.py > docs/errors.md"
    silent = [kind.__name__ for kind in errors.classes()[1:] if not errors.when_and_remedy(kind)[1]]
    assert silent == []


def test_every_error_that_users_see_is_in_the_reference() -> None:
    def below(kind: type[QuireError]) -> set[type[QuireError]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    named = set(errors.classes())
    of_quire = {kind for kind in below(QuireError) if kind.__module__ == "quire.errors"}
    assert of_quire <= named


def test_every_public_name_is_told_of_in_the_docs() -> None:
    """``quire.__all__``: what a user may import stands on some page or in an example."""
    text = "".join(page.read_text() for page in [ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/*.py")])

    assert [name for name in quire.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_what_the_readme_types_in_a_clone_is_typed_by_the_test_of_the_page_about_installing() -> None:
    shown = {command.typed for block in blocks(ROOT / "README.md") for command in commands(block.text)}
    typed = {command.typed for block in blocks(DOCS / "install.md") for command in commands(block.text)}
    assert {line for line in shown if line.startswith(("make ", "uvx ", "git ", "pip "))} - typed == set()


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
