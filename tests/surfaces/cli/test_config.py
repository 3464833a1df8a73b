"""Where each setting comes from, and one sentence for what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.ledger.finding import concealed, sqlite_path
from quire.surfaces import config
from quire.surfaces.config import ConfigError, load
from tests.surfaces.cli.conftest import Project


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    environ = {"QUIRE_LEDGER": "sqlite:///env.db"}
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)

    assert load(start=inner, environ={}).ledger == f"sqlite:///{inner}/.quire/ledger.db"

    (tmp_path / "quire.toml").write_text('ledger = "sqlite:///file.db"\nflows = "flows.py"\n')
    found = load(start=inner, environ={})
    assert found.ledger == f"sqlite:///{tmp_path}/file.db"
    assert found.flows == [f"{tmp_path}/flows.py"]
    assert found.source("ledger") == str(tmp_path / "quire.toml")
    assert found.source("folder") == "default"

    assert load(start=inner, environ=environ).ledger == f"sqlite:///{inner}/env.db"
    assert load(start=inner, environ=environ).source("ledger") == "environment QUIRE_LEDGER"

    flagged = load({"ledger": "flag.db"}, start=inner, environ=environ)
    assert (flagged.ledger, flagged.source("ledger")) == (f"sqlite:///{inner}/flag.db", "flag")


def test_paths_of_the_file_are_relative_to_the_file_from_wherever_a_command_is_typed(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text('folder = "Workflows"\nflows = ["a.py", "b/c.py"]\n')
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)

    found = load(start=below, environ={})

    assert found.folder == f"{tmp_path}/Workflows"
    assert found.flows == [f"{tmp_path}/a.py", f"{tmp_path}/b/c.py"]


def test_a_table_of_pyproject_is_a_configuration_too(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.quire]\ndeps = "flows:make"\n[tool.quire.groups]\nx = ["ann@x.eu"]\n'
    )

    found = load(start=tmp_path, environ={})

    assert (found.deps, found.groups) == ("flows:make", {"x": ["ann@x.eu"]})


def test_a_pyproject_without_the_table_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text('who = "outer"\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    assert load(start=inner, environ={}).who == "outer"


def test_several_flows_in_one_variable(tmp_path: Path) -> None:
    found = load(start=tmp_path, environ={"QUIRE_FLOWS": "a.py,b.py"})

    assert found.flows == [f"{tmp_path}/a.py", f"{tmp_path}/b.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ledger = \n", "is not TOML: Invalid value (at line 1"),
        ('who = "x"\nlegder = "y"\n', "line 2: there is no key 'legder'; did you mean 'ledger'?"),
        ('who = "x"\nledger = 3\n', "line 2: 'ledger' must be a text, not 3"),
        ("flows = [1]\n", "line 1: 'flows' must be a list of texts, not [1]"),
        ('\n\n[groups]\nx = "ann"\n', "line 3: 'groups' must be a table whose values are lists of texts"),
        ("callers = []\n", "line 1: 'callers' must be a table of texts"),
    ],
)
def test_a_bad_file_is_told_in_one_sentence_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "quire.toml").write_text(text)

    with pytest.raises(ConfigError) as caught:
        load(start=tmp_path, environ={})

    assert told in str(caught.value)
    assert str(tmp_path / "quire.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_and_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="cannot be read"):
        load(start=tmp_path, environ={})
    with pytest.raises(ConfigError, match="there is no configuration file"):
        load(file="nope.toml", start=tmp_path, environ={})
    with pytest.raises(ConfigError, match="there is no configuration file"):
        load(start=tmp_path, environ={"QUIRE_CONFIG": "nope.toml"})


def test_a_password_is_not_shown() -> None:
    assert concealed("postgresql://ann:secret@host/db") == "postgresql://ann:…@host/db"
    assert concealed("postgresql://ann:p@ss:w@host/db") == "postgresql://ann:…@host/db"
    assert concealed("postgresql://ann@host/db?password=secret&x=1") == "postgresql://ann@host/db?password=…&x=1"
    assert concealed("postgresql://host/db?x=1&sslpassword=a@b") == "postgresql://host/db?x=1&sslpassword=…"
    assert concealed("postgresql://p/db?direct=postgresql://ann:x@h/d&a=1") == "postgresql://p/db?direct=…&a=1"
    assert concealed("sqlite:////a/b@c:d") == "sqlite:////a/b@c:d"


def test_which_addresses_are_files() -> None:
    assert [sqlite_path(url) for url in ("sqlite:///a", "sqlite:////a", "a/b.db", "memory:", "postgresql://h/d")] == [
        "a",
        "/a",
        "a/b.db",
        None,
        None,
    ]


def test_config_shows_each_value_and_its_source(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_PUBLIC_URL", "https://x.eu")

    rows = {row["key"]: row for row in project.json("config", "--ledger", "postgresql://a:b@h/d")}

    assert set(rows) == {key.name for key in config.KEYS}
    assert rows["ledger"] == {"key": "ledger", "value": "postgresql://a:…@h/d", "source": "flag"}
    assert rows["public_url"]["source"] == "environment QUIRE_PUBLIC_URL"
    assert rows["who"]["source"] == str(project.path / "quire.toml")
    assert rows["deps"]["source"] == "default"
    shown = project.quire("config").stdout
    assert "editors: ann@x.eu, bob@x.eu" in shown
    assert f"flows        {project.path / 'flows.py'}" in shown


def test_the_same_ledger_from_below(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    below = project.path / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    project.quire("start", "publish", "keyword=x", "--id", "a")

    assert project.record("a").workflow == "publish"
    assert not list(below.iterdir())


def test_a_bad_configuration_ends_every_command_with_one_sentence(project: Project) -> None:
    project.write("quire.toml", 'ledgr = "x"')

    assert "there is no key 'ledgr'" in project.error("list", code=2)
    assert "there is no key 'ledgr'" in project.error(code=2)
