"""What is shipped, what an import costs, and what the repository must not contain."""

from __future__ import annotations

import ast
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points, metadata
from pathlib import Path

import psycopg
import pytest

from quire.testing.postgres import PostgresServer

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "quire"

#: Loaded only by what uses them. A plain install has some of these, an import of the package needs none.
HEAVY = ["a2a", "click", "fastapi", "google", "httpx2", "mcp", "opentelemetry", "psycopg", "pydantic_ai", "rich"]


def repository_files() -> Iterator[Path]:
    """The text files that git would keep: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("this is not a git work tree")
    for name in listing.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in path.read_bytes()[:8000]:
            yield path


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_wheel_carries_the_type_marker_the_licence_and_no_tests(tmp_path: Path) -> None:
    if not (ROOT / "README.md").exists():
        pytest.fail("README.md is missing: the package cannot be built without it.", pytrace=False)

    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "quire/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("quire/", "quire-")) for name in names)
    shipped = {name for name in names if name.startswith("quire/") and name.endswith(".py")}
    assert shipped == {path.relative_to(ROOT / "src").as_posix() for path in PACKAGE.rglob("*.py")}


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = python("import sys, quire; print(*sorted({name.partition('.')[0] for name in sys.modules}))").split()

    assert sorted(set(loaded) & set(HEAVY)) == []


def test_importing_the_package_starts_no_thread_and_opens_no_file() -> None:
    code = (
        "import os, threading; before = os.listdir('/proc/self/fd') if os.path.isdir('/proc') else []; import quire; "
    )
    code += "print(threading.active_count(), len(os.listdir('/proc/self/fd')) - len(before) if before else 0)"

    assert python(code) == "1 0"


def test_the_command_is_declared() -> None:
    [command] = [found for found in entry_points(group="console_scripts") if found.name == "quire"]

    assert command.value == "quire.surfaces.cli:main"


def test_the_core_needs_few_packages() -> None:
    required = [line for line in metadata("quire").get_all("Requires-Dist") or [] if "extra ==" not in line]

    names = {re.split(r"[^\w-]", line)[0].replace("_", "-").lower() for line in required}
    assert names == {"click", "cronsim", "httpx2", "msgspec", "pydantic", "rich", "typing-extensions", "tzdata"}


def test_nothing_outside_testing_imports_testing() -> None:
    importers = []
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "testing" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            importers += [
                f"{path.relative_to(PACKAGE)}: {name}" for name in names if f"{name}.".startswith("quire.testing.")
            ]

    assert importers == []


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    # Spelled in pieces, because this file is searched too.
    registries = ["pypi" + ".org", "python" + "hosted", "npmjs" + ".org", "registry" + ".yarnpkg", "--index" + "-url"]
    places = [r"(?<![\w.>}])/" + name for name in ("ro" + "ot/", "wo" + "rk/", "opt/" + "wheels")]
    forbidden = re.compile("|".join([*map(re.escape, registries), *places]))

    found = []
    for path in repository_files():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if match := forbidden.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")

    assert found == []


def test_the_pins_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9._-]+==[\w.!+]+( ; [\w\s.<>=!'()]+)?", line)] == []


def test_the_postgres_server_of_the_tests_is_real_and_gives_each_test_its_own_database(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    other_url = postgres_server.create_database()

    with psycopg.connect(postgres_url) as connection, psycopg.connect(other_url) as other:
        connection.execute("CREATE TABLE here (n int)")
        connection.commit()
        [tables] = other.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall()
    postgres_server.drop_database(other_url)

    assert tables == (0,)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other_url)


def test_a_killed_test_process_leaves_no_postgres_server_behind() -> None:
    code = (
        "from quire.testing.postgres import PostgresServer\n"
        "server = PostgresServer().start()\n"
        "print(server.url, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            process.send_signal(signal.SIGKILL)

            ended, _, _ = select.select([connection.fileno()], [], [], 30)

            assert ended
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


@pytest.mark.parametrize("folder", ["quire", "main"])
def test_the_tests_run_in_a_folder_named_quire_and_ci_ends_as_they_do(folder: str, tmp_path: Path) -> None:
    checkout = tmp_path / folder
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    (checkout / ".venv").mkdir()
    (checkout / "Makefile").write_text("test:\n\t@ls -A; basename $$PWD; echo 1 failed; exit 1\n")

    # The tests themselves may run under make, which hands its own state down to every make below it.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run([checkout / ".ci" / "run"], capture_output=True, text=True, check=False, env=alone)

    kept = [".ci", ".venv", "Makefile"] if folder == "quire" else [".ci", "Makefile"]
    assert (ran.returncode, ran.stdout.split("\n")) == (2, [*kept, "quire", "1 failed", ""])
