"""The command as a process: its start, its pipes, its signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hectograph import Emulator
from quire.ledger.process import NICENESS, started
from quire.model.record import Status
from quire.surfaces.cli.begin import project as begin
from tests.surfaces.cli.conftest import Project


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err
    return process.returncode, out, err


def test_help_imports_nothing_heavy(empty: Project) -> None:
    script = (
        "import sys\nfrom quire.surfaces.cli import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pydantic', 'pydantic_core', 'rich', 'httpx2', 'asyncio', 'sqlite3', 'quire.client.client'}\n"
        "sys.stderr.write(str(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=empty.path, check=True)

    assert done.stderr == "[]"
    assert "Exit codes:" in done.stdout


def test_exit_codes_of_a_process(project: Project) -> None:
    assert finished(project.process("--version"))[0] == 0
    assert finished(project.process("list"))[0] == 0
    assert finished(project.process("lst"))[0] == 2
    assert finished(project.process("approve", "nope"))[0] == 4
    assert finished(project.process("start", "board", "--id", "t"))[0] == 0
    code, out, err = finished(project.process("move", "t", "NOPE", "--json"))
    assert (code, out) == (3, "")
    assert json.loads(err) == {
        "error": "IllegalMove",
        "message": "Invalid state transition: Cannot move from TODO to NOPE. ('t' may go from 'TODO' to 'DOING')",
        "exit": 3,
    }


def test_a_pipe_that_closes_early_is_no_error(project: Project) -> None:
    lines = "".join(f"{'long' * 50}-{number}\n" for number in range(300))
    project.write("board.csv", f"record_id\n{lines}")
    project.quire("start", "board", "--from", "board.csv")
    process = project.process("list", "--limit", "1000")
    assert process.stdout is not None

    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()

    assert process.wait(60) == 0
    process.stderr.close()
    assert err == ""


def test_an_unexpected_error_is_one_sentence_and_debug_shows_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quire.client.client import Client

    async def broken(self: Client, *args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(Client, "find", broken)

    assert project.error("list", code=1) == (
        "this should not happen: ZeroDivisionError: oh (the same command with --debug shows the details)"
    )
    assert json.loads(project.quire("list", "--json", code=1).stderr)["exit"] == 1


# -- workers as processes ------------------------------------------------------------------------------------------

STEPS = """
from quire import Run, workflow
from quire.clock import SYSTEM

@workflow
async def short(run: Run) -> str:
    print("begun", flush=True)
    await SYSTEM.sleep(0.5)
    return "finished"

@workflow
async def endless(run: Run) -> None:
    print("begun", flush=True)
    await SYSTEM.sleep(3600)
"""


@pytest.fixture
def steps(empty: Project) -> Project:
    empty.write("flows.py", STEPS)
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\n')
    empty.work()
    return empty


def begun(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == "begun\n":
            return
    raise AssertionError("the step did not begin")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_running_steps_finish_and_leaves_nothing_running(steps: Project, number: signal.Signals) -> None:
    steps.quire("start", "short", "--id", "a")
    process = steps.process("worker")
    begun(process)

    process.send_signal(number)
    code, _, err = finished(process)

    assert code == 0
    assert "1 steps may finish within 10 s" in err
    assert steps.record("a").status is Status.DONE
    assert all(worker.closed == "farewell" for worker in steps.ask(lambda client: client.workers()))


@pytest.mark.skipif(
    not hasattr(os, "SCHED_BATCH") or os.nice(0) != 0,
    reason="this system knows no batch processes, or these tests are nice already: what they start keeps that",
)
@pytest.mark.parametrize(
    ("words", "policy", "niceness"), [("worker", "SCHED_BATCH", NICENESS), ("up --port 0", "SCHED_OTHER", 0)]
)
def test_a_process_that_only_works_gives_way_to_those_that_answer(
    steps: Project, words: str, policy: str, niceness: int
) -> None:
    steps.quire("start", "short", "--id", "a")
    process = steps.process(*words.split())
    begun(process)

    found = os.sched_getscheduler(process.pid), os.getpriority(os.PRIO_PROCESS, process.pid)
    process.send_signal(signal.SIGTERM)

    assert finished(process)[0] == 0
    assert found == (getattr(os, policy), niceness)


def test_a_step_that_outlasts_the_grace_goes_back_unharmed(steps: Project) -> None:
    steps.quire("start", "endless", "--id", "a")
    process = steps.process("worker", "--grace", "0.2s")
    begun(process)

    process.send_signal(signal.SIGTERM)

    assert finished(process)[0] == 0
    record = steps.record("a")
    assert (record.status, record.worker, record.attempt) == (Status.PENDING, None, 0)


def test_a_second_ctrl_c_gives_back_at_once(steps: Project) -> None:
    steps.quire("start", "endless", "--id", "a")
    process = steps.process("up", "--port", "0", "--grace", "1h")
    begun(process)
    assert process.stderr is not None

    process.send_signal(signal.SIGINT)
    assert "Ctrl-C again ends them now" in process.stderr.readline()
    process.send_signal(signal.SIGINT)

    assert finished(process)[0] == 0
    assert steps.record("a").status is Status.PENDING


def test_a_budget_ends_a_worker_with_zero_and_gives_back_what_runs(steps: Project) -> None:
    steps.quire("start", "endless", "--id", "a")
    process = steps.process("worker", "--budget", "1.5s", "--label", "nightly", "--concurrency", "2")

    code, out, _ = finished(process)

    assert code == 0
    assert "worker ended" in out
    assert steps.record("a").status is Status.PENDING
    assert "nightly" in {worker.label for worker in steps.ask(lambda client: client.workers())}


def test_up_says_in_its_first_line_what_it_is(steps: Project) -> None:
    process = steps.process("up", "--port", "0")
    assert process.stdout is not None

    first = process.stdout.readline()
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)

    assert finished(process)[0] == 0
    assert first.startswith(("worker + API + dashboard on http://", "worker only: "))


def test_up_starts_again_when_a_flow_file_changes(steps: Project) -> None:
    process = steps.process("up", "--port", "0", "--reload")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    assert "short, endless" in process.stdout.readline()

    steps.write("flows.py", STEPS.replace("endless", "eternal"))
    assert "a flow file has changed" in process.stderr.readline()
    process.stdout.readline()
    assert "short, eternal" in process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert finished(process)[0] == 130


def test_what_starts_again_takes_its_child_along_when_it_is_ended(steps: Project) -> None:
    process = steps.process("up", "--port", "0", "--reload")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    [child] = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())

    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=30)

    left = started(child) is not None
    if left:
        os.kill(child, signal.SIGKILL)
    finished(process)
    assert (code, left) == (0, False)


def test_closed_streams_change_no_exit_code(steps: Project) -> None:
    def typed(words: str) -> int:
        shell = f"exec {sys.executable} -m quire.surfaces.cli {words}"
        return subprocess.run(shell, shell=True, cwd=steps.path, stderr=subprocess.PIPE, check=False).returncode

    assert typed("start short --id a >&-") == 0
    assert steps.record("a").status is Status.PENDING
    assert typed("list >&- 2>&-") == 0
    assert typed("show nobody --json <&- >&- 2>&-") == 4
    assert typed("start short --data - --id b <&- >&- 2>&-") == 2


def test_following_logs_until_ctrl_c(steps: Project) -> None:
    steps.quire("start", "short", "--id", "a")
    process = steps.process("logs", "-f", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["kind"] == "started"

    steps.quire("cancel", "a")
    assert json.loads(process.stdout.readline())["kind"] == "cancelled"
    process.send_signal(signal.SIGINT)

    assert finished(process)[0] == 0


def test_the_start_of_a_module_is_the_same_as_up(steps: Project) -> None:
    file = str(steps.path / "flows.py")
    script = f"import sys\nsys.argv = ['x', '--nope']\nfrom quire.surfaces.cli import run_file\nrun_file({file!r})"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=steps.path, check=False)

    assert done.returncode == 2
    assert "No such option '--nope'" in done.stderr
    assert "quire up --help" in done.stderr


# -- the demo ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_kills_its_worker_and_nothing_is_done_twice(empty: Project) -> None:
    code, out, err = finished(empty.process("demo", "--json", "--articles", "8"))

    assert code == 0, err
    told = json.loads(out.splitlines()[-1])
    assert (told["articles"], told["posts"], told["twice"], told["proven"]) == (8, 8, 0, True)
    folder = Path(told["folder"])
    assert folder == (empty.path / "quire-demo").resolve()
    assert not list(folder.glob("*.part"))
    os.chdir(folder)
    assert "no difference" in empty.quire("verify").stdout
    killed = [row for row in empty.json("logs", "-n", "1000") if row["kind"] == "lost"]
    assert killed
    assert all(row["body"]["reason"] for row in killed)


def test_the_demo_wants_a_directory_of_its_own(empty: Project) -> None:
    empty.write("mine.txt", "do not touch")

    assert "is not empty" in empty.error("demo", "--dir", ".", code=2)
    assert "cannot be used" in empty.error("demo", "--dir", "/proc/nowhere", code=2)
    empty.quire("demo", "--articles", "1", code=2)
    assert [path.name for path in empty.path.iterdir()] == ["mine.txt"]


def test_init_writes_what_runs_and_leaves_what_is_there(empty: Project) -> None:
    told = empty.quire("init", "shop")
    assert "wrote shop/quire.toml" in told.stdout.replace(os.sep, "/")
    os.chdir(empty.path / "shop")

    assert "greet is well: draft → review → deliver → drop" in empty.quire("check").stdout
    empty.work()
    empty.quire("start", "greet", "name=Ann", "--id", "g")
    empty.work()
    empty.quire("approve", "g")
    assert "Hello, Ann!" in empty.quire("worker", "--until-idle").stdout
    assert empty.json("show", "g")[0]["result"] == "Hello, Ann!"

    (empty.path / "shop" / "quire.toml").write_text('who = "mine"\n')
    assert "left quire.toml as it is" in empty.quire("init").stdout
    assert (empty.path / "shop" / "quire.toml").read_text() == 'who = "mine"\n'
    assert "not an address of a ledger" in empty.error("init", "other", "--ledger", 'x"\ny', code=2)
    assert "cannot be written" in empty.error("init", "/proc/nowhere", code=2)


@pytest.mark.parametrize(
    ("given", "ledger"),
    [
        ("https://docs.google.com/spreadsheets/d/1aB-c_9/edit?gid=0#gid=0", "sheets://1aB-c_9"),
        ("https://docs.google.com/spreadsheets/u/1/d/1aB-c_9", "sheets://1aB-c_9"),
        ("postgresql://localhost/shop", "postgresql://localhost/shop"),
        ("shop", "sqlite:///.quire/ledger.db"),
    ],
)
def test_the_ledger_that_init_is_given(given: str, ledger: str) -> None:
    assert begin._ledger(None, given) == ledger


def test_init_for_a_sheet_writes_its_address_and_it_is_a_ledger_then(empty: Project) -> None:
    with Emulator() as emulator:
        made = emulator.call("POST", "/v4/spreadsheets", {"properties": {"title": "Desk"}})
        url = f"sheets://{json.loads(made.body)['spreadsheetId']}?endpoint={emulator.url}"

        wrong = url.replace("sheets://", "sheets://no-such-")
        assert "nothing was written for" in empty.error("init", wrong, code=2)
        assert list(empty.path.iterdir()) == []

        told = empty.quire("init", url)

        assert "wrote quire.toml" in told.stdout and "quire up" in told.stdout
        assert f'ledger = "{url}"' in (empty.path / "quire.toml").read_text()
        assert "no records" in empty.quire("list").stderr + empty.quire("list").stdout


@pytest.mark.parametrize(
    ("url", "code", "told"),
    [
        ("https://example.org/d/x", 2, "is not a Google Sheet"),
        ("postgresql://127.0.0.1:1/x", 1, "no PostgreSQL server answers"),
        ("ftp://x", 2, "is not a ledger that Quire knows"),
    ],
)
def test_init_for_a_ledger_that_does_not_answer_writes_nothing(empty: Project, url: str, code: int, told: str) -> None:
    assert told in empty.error("init", url, code=code)

    assert list(empty.path.iterdir()) == []
