"""What lies in deploy/ is what the guide says: its files hold together, and its commands run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from quire.clock import SYSTEM

DEPLOY = Path(__file__).parents[2] / "deploy"
compose: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_every_copied_and_mounted_path_is_there_and_nothing_runs_as_root() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    ignore = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for paths in copied:
        for path in [path for path in paths if not path.startswith("--")]:
            assert (DEPLOY.parent / path).exists(), path
            assert f"!{path.rstrip('/')}" in ignore, f"{path} is left out of the build"
    assert "USER quire" in lines
    extras = set(re.findall(r"\[([a-z0-9,]+)\]\"", "\n".join(lines))[0].split(","))
    known = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras <= set(known)


def test_the_services_of_compose_are_a_database_two_workers_and_the_dashboard() -> None:
    services = compose["services"]
    assert set(services) == {"db", "worker-1", "worker-2", "dashboard"}
    assert services["dashboard"]["ports"] == ["127.0.0.1:8700:8700"]  # nobody else's machine reaches it by default
    for name in ("worker-1", "worker-2", "dashboard"):
        service = services[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["depends_on"] == {"db": {"condition": "service_healthy"}}
        assert (DEPLOY / service["build"]["dockerfile"].removeprefix("deploy/")).is_file()
    # Where the tool is there, it is asked as well.
    if tool := shutil.which("docker-compose"):
        environ = os.environ | {"QUIRE_DB_PASSWORD": "x"}
        command = [tool, "-f", str(DEPLOY / "compose.yaml"), "config", "-q"]
        ended = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=60)
        assert ended.returncode == 0, ended.stderr


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("there is no systemd-analyze here")
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text().replace("/opt/quire/bin/quire", sys.executable)
        (tmp_path / unit.name).write_text(text)
        command = [tool, "verify", "--man=no", str(tmp_path / unit.name)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0 and unit.name not in ended.stderr, ended.stderr


def test_the_script_for_cloud_run_calls_what_it_says_and_works_twice(tmp_path: Path) -> None:
    fake = tmp_path / "gcloud"
    fake.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/calls\n'
        f'case "$*" in *"services replace"*) cat "$4" > {tmp_path}/applied;; esac\n'
        f'case "$*" in *"services describe"*) [ -f {tmp_path}/applied ] && echo https://quire-abc.run.app;; esac\n'
        f'case "$*" in *"jobs describe"*|*"accounts describe"*|*"topics describe"*|*"subscriptions describe"*) '
        f"[ -f {tmp_path}/second ] || exit 1;; esac\n"
        "exit 0\n"
    )
    fake.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PROJECT": "p1", "REGION": "r1", "TOKEN": "qt_a_b"}

    def deployed() -> str:
        (tmp_path / "calls").unlink(missing_ok=True)
        script = str(DEPLOY / "cloudrun/deploy.sh")
        ended = subprocess.run([script], capture_output=True, text=True, env=environ, check=False, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return (tmp_path / "calls").read_text()

    first = deployed()
    service = yaml.safe_load((tmp_path / "applied").read_text())
    (tmp_path / "second").touch()
    second = deployed()
    [container] = service["spec"]["template"]["spec"]["containers"]
    told = {row["name"]: row.get("value") for row in container["env"]}

    assert told["QUIRE_PUBLIC_URL"] == "https://quire-abc.run.app" and told["GOOGLE_CLOUD_PROJECT"] == "p1"
    assert container["image"] == "r1-docker.pkg.dev/p1/quire/quire"
    assert "@" not in (tmp_path / "applied").read_text().replace("quire@p1.iam.gserviceaccount.com", "")
    assert "scheduler jobs create http quire-tick" in first and "https://quire-abc.run.app/tick" in first
    assert "subscriptions create quire-events-push" in first
    assert "--push-auth-token-audience https://quire-abc.run.app" in first
    assert "jobs update http quire-tick" in second and "create" not in second
    without = {key: value for key, value in environ.items() if key != "TOKEN"}
    script = str(DEPLOY / "cloudrun/deploy.sh")
    refused = subprocess.run([script], capture_output=True, text=True, env=without, check=False, timeout=60)
    assert refused.returncode != 0 and "quire token create" in refused.stderr


@contextmanager
def process(words: list[str], environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    made = subprocess.Popen(
        [sys.executable, "-m", "quire.surfaces.cli", *words],
        cwd=DEPLOY / "app",
        env=os.environ | environ | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield made
    finally:
        if made.poll() is None:
            made.send_signal(signal.SIGTERM)
        code = made.wait(60)
        made.stdout.close()  # type: ignore[union-attr]
        assert code == 0, words


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
async def test_the_commands_of_the_containers_run_by_hand_against_postgresql(postgres_url: str) -> None:
    """The guide: make a token, start two workers and the dashboard, start a record, approve it, end them."""
    port = _free_port()
    environ = {"QUIRE_LEDGER": postgres_url, "QUIRE_PUBLIC_URL": f"http://localhost:{port}"}
    services = compose["services"]
    serve = [word.replace("8700", str(port)) for word in services["dashboard"]["command"]]
    with process(["token", "create", "you@example.org", "--role", "admin"], environ) as making:
        token = (await asyncio.to_thread(making.communicate, timeout=60))[0].splitlines()[-1]
    with (
        process(services["worker-1"]["command"], environ) as one,
        process(services["worker-2"]["command"], environ) as two,
        process(serve, environ) as site,
    ):
        for running in (one, two, site):
            assert running.stdout is not None and running.stdout.readline()
        base = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}) as http:
            ready = await http.get("/ready")
            stranger = await http.get("/api/records", headers={"Authorization": ""})
            await http.post("/api/records", json={"workflow": "hello", "record_id": "h1", "data": {"name": "Mars"}})
            while not (asked := (await http.get("/api/approvals")).json()["approvals"]):
                await SYSTEM.sleep(0.05)
            seen = asked[0]["asked"]["hash"]
            await http.post("/api/records/h1/answer", json={"choice": "approve", "seen": seen})
            while (shown := (await http.get("/api/records/h1")).json()["record"])["status"] != "DONE":
                await SYSTEM.sleep(0.05)
            workers = [row["label"] for row in (await http.get("/api/workers")).json() if row["alive"]]

    assert ready.status_code == 200 and stranger.status_code == 401
    assert shown["result"] == "Hello, Mars!"
    assert sorted(workers) == ["worker-1", "worker-2"]
