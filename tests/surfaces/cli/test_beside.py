"""What quire.toml names runs beside a worker: alerts and traces, from the command line to a real server."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.surfaces.cli.conftest import Project

FLOWS = """
from quire import Fail, Run, workflow

@workflow
async def job(run: Run[dict]) -> None:
    raise Fail("the site is gone")
"""


class Sink(http.server.ThreadingHTTPServer):
    got: list[tuple[str, bytes]]


@pytest.fixture
def sink() -> Iterator[Sink]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append((self.path, raw))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    made = Sink(("127.0.0.1", 0), Handler)
    made.got = []
    thread = threading.Thread(target=lambda: made.serve_forever(poll_interval=0.02))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_worker_tells_of_errors_and_sends_its_traces(empty: Project, sink: Sink) -> None:
    url = f"http://127.0.0.1:{sink.server_port}"
    empty.write("flows.py", FLOWS)
    base = 'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\n'
    empty.write("quire.toml", f'{base}[alerts]\nops = "webhook:{url}/alert"\n[telemetry]\notlp = "{url}"\n')
    empty.work()
    empty.quire("start", "job", "--id", "bad")
    empty.work()
    empty.work()

    alerts = [json.loads(raw) for path, raw in sink.got if path == "/alert"]
    assert [alert["record_ids"] for alert in alerts] == [["bad"]]  # once, by the first of the two
    traces = [raw for path, raw in sink.got if path == "/v1/traces"]
    assert traces and any(path == "/v1/metrics" for path, _ in sink.got)
    shown = empty.quire("config").output
    assert url not in shown.partition("telemetry")[0]  # the addresses of channels are secrets


def test_what_is_configured_wrongly_is_one_sentence(empty: Project) -> None:
    empty.write("flows.py", FLOWS)
    base = 'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\n'
    empty.write("quire.toml", f'{base}[alerts]\nops = "pigeon:x"\n')
    assert "is not a way" in empty.error("worker", "--until-idle", code=2)
    empty.write("quire.toml", f'{base}[telemetry]\notlp = "collector"\n')
    assert "the address of a collector" in empty.error("worker", "--until-idle", code=2)
