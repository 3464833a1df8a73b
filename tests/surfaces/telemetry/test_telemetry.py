"""Traces, metrics and log lines: made from the log, in the right order and times, and sent once."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

import quire
from quire import Act, Fail, Retry, Run, Workflow, effect
from quire.agents.missions.flow import compiled
from quire.client.client import Client
from quire.errors import InputError
from quire.explain.spans import Span, first_span, spans, trace_id
from quire.surfaces.cli.run.beside import checked_telemetry
from quire.surfaces.server.auth.tokens import Role, make_token
from quire.surfaces.telemetry.export import Export
from quire.surfaces.telemetry.following import Following
from quire.surfaces.telemetry.logs import JsonLines, wanted
from quire.surfaces.telemetry.metrics import Meter, Sample
from quire.surfaces.telemetry.tracing import Tracing
from tests.agents.missions import blueprint
from tests.surfaces.server.conftest import calling, opened


@effect
async def pay(act: Act, amount: int) -> int:
    return amount


def make_flows() -> list[Workflow[Any, Any, Any]]:
    order: Workflow[dict[str, Any], Any, None] = Workflow("order")
    parcel: Workflow[dict[str, Any], Any, None] = Workflow("parcel")

    @order.step(then="ship")
    async def charge(run: Run[dict[str, Any]]) -> None:
        await run.once(pay, 7)

    @order.step(retry=Retry(1))
    async def ship(run: Run[dict[str, Any]]) -> int:
        if run.data.get("broken"):
            raise Fail("no parcels today")
        return len(await run.map(parcel, [{}, {}]))

    @parcel.step
    async def carry(run: Run[dict[str, Any]]) -> None: ...

    return [order, parcel]


async def all_spans(client: Client, record_id: str) -> list[Span]:
    receipts = await client.ledger.receipts(record_ids=[record_id])
    return spans(await client.get(record_id), await client.events(record_id), receipts)


async def test_a_log_becomes_record_run_step_and_effect_inside_each_other() -> None:
    async with quire.aopen("memory:", workflows=make_flows()) as client:
        await client.start("order", {}, id="o1")
        await client.work()
        made = await all_spans(client, "o1")
        found = (await Following(client.ledger).look(0)).found

    by_id = {span.span_id: span for span in made}
    steps = [span for span in made if span.kind == "step"]
    [record] = [span for span in made if span.kind == "record"]
    [paid] = [span for span in made if span.kind == "effect"]
    assert [(span.name, span.outcome) for span in steps] == [("charge", "moved"), ("ship", "waited"), ("ship", "done")]
    assert [span.kind for span in made].count("run") == 2
    assert (record.name, record.outcome, record.parent_id) == ("order", "done", "")
    assert by_id[paid.parent_id].name == "charge" and by_id[steps[0].parent_id].parent_id == record.span_id
    for span in made:
        if span.parent_id:
            outer = by_id[span.parent_id]
            assert outer.start <= span.start <= span.end <= outer.end
    children = [one for one in found if one.span.kind == "record" and one.span.name == "parcel"]
    assert len(children) == 2
    assert {one.trace_id for one in found} == {trace_id("o1")}
    assert {one.span.parent_id for one in children} == {record.span_id} == {first_span("o1")}


async def test_an_error_is_told_and_a_retry_is_another_life() -> None:
    async with quire.aopen("memory:", workflows=make_flows()) as client:
        await client.start("order", {"broken": True}, id="o1")
        await client.work()
        first = await all_spans(client, "o1")
        await client.edit("o1", {})
        await client.retry("o1")
        await client.work()
        both = await all_spans(client, "o1")

    lives = [span for span in both if span.kind == "record"]
    assert [(span.outcome, bool(span.error)) for span in lives] == [("broke", True), ("done", False)]
    assert "no parcels today" in lives[0].error and lives[0].span_id != lives[1].span_id
    assert both[: len(first)] == first  # what was told once is told the same again


async def test_calls_of_models_hang_under_the_effect_that_permitted_them() -> None:
    flow = compiled(blueprint({"model": "scripted", "script": {"delay": 0.05}}, names=["ceo"]))
    async with quire.aopen("memory:", workflows=[flow]) as client:
        await client.start("colony", {}, id="m1")
        await client.work()
        found = (await Following(client.ledger).look(0)).found

    by_id = {one.span.span_id: one.span for one in found}
    calls = [one.span for one in found if one.span.kind == "model"]
    assert len(calls) == 4  # three turns and the reducer
    for call in calls:
        act = by_id[call.parent_id]
        assert (act.kind, by_id[act.parent_id].kind) == ("effect", "step")
        assert act.start <= call.start and call.end <= act.end and call.end - call.start >= 0.04
        assert call.attributes["gen_ai.request.model"] == "scripted"
        assert call.attributes["gen_ai.usage.output_tokens"] > 0
    assert len({one.trace_id for one in found}) == 1


async def test_every_look_tells_what_became_complete_and_nothing_twice(tmp_path: Path) -> None:
    async with quire.aopen(f"sqlite:///{tmp_path}/ledger.db", workflows=make_flows()) as client:
        for number in range(30):
            await client.start("order", {}, id=f"o{number}")
        following, seq, told = Following(client.ledger), 0, []
        worker = client.worker(concurrency=3)
        looks = 0

        async def look() -> None:
            nonlocal seq, looks
            seen = await following.look(seq)
            seq, looks = seen.seq, looks + 1
            told.extend(seen.found)

        working = asyncio.ensure_future(worker.run(until_idle=True))
        while not working.done():
            await look()
        await look()
        whole = (await Following(client.ledger).look(0)).found

    ids = [one.span.span_id for one in told]
    assert looks > 2 and len(ids) == len(set(ids))
    assert set(ids) == {one.span.span_id for one in whole}


async def test_spans_and_metrics_are_exported_once_and_after_a_restart_from_where_it_stopped() -> None:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    sink = Export(exporter, reader)
    async with quire.aopen("memory:", workflows=make_flows()) as client:
        await client.start("order", {}, id="before")
        await client.work()
        first = Tracing(client, sink)
        await first.once()
        assert not exporter.get_finished_spans()  # what was before nobody asked for
        await client.start("order", {}, id="o1")
        await client.work()
        await first.once()
        some = exporter.get_finished_spans()
        second = Tracing(client, sink)
        held = await second.once()
        await first.release()
        await client.start("order", {}, id="o2")
        await client.work()
        await second.once()
        await second.once()
        every = exporter.get_finished_spans()
        data = json.loads(reader.get_metrics_data().to_json())  # type: ignore[union-attr]

    assert held and len(every) == 2 * len(some)
    assert len({span.context.span_id for span in every if span.context}) == len(every)
    root = next(span for span in some if span.parent is None)
    assert root.context is not None and f"{root.context.trace_id:032x}" == trace_id("o1")
    assert root.attributes is not None and root.attributes["quire.record_id"] == "o1"
    metrics = {
        metric["name"]: metric["data"]["data_points"]
        for metric in data["resource_metrics"][0]["scope_metrics"][0]["metrics"]
    }
    assert sum(point["value"] for point in metrics["quire.records_ended"]) == 6  # two orders with two parcels each
    assert sum(point["count"] for point in metrics["quire.step_seconds"]) == 10
    assert {point["attributes"]["status"] for point in metrics["quire.records"]} == {"DONE"}


class Collector:
    """A real OTLP/HTTP receiver, which may refuse."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[str] = []
        self.status = 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    raw = gzip.decompress(raw)
                if outer.status == 200 and self.path == "/v1/traces":
                    for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
                        outer.spans += [span for scope in resource.scope_spans for span in scope.spans]
                elif outer.status == 200 and self.path == "/v1/metrics":
                    for told in ExportMetricsServiceRequest.FromString(raw).resource_metrics:
                        outer.metrics += [metric.name for scope in told.scope_metrics for metric in scope.metrics]
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def collector() -> Iterator[Collector]:
    found = Collector()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()


async def test_a_real_collector_gets_traces_and_metrics_also_those_that_it_refused_first() -> None:
    with collector() as there:
        sink = Export.otlp(there.url)
        async with quire.aopen("memory:", workflows=make_flows()) as client:
            tracing = Tracing(client, sink)
            await tracing.once()
            await client.start("order", {}, id="o1")
            await client.work()
            there.status = 400
            refused = await tracing.once()
            there.status = 200
            taken = await tracing.once()
        sink.close()

    assert (refused, taken) == (False, True)
    names = sorted({span.name for span in there.spans})
    assert names == ["carry", "charge", "order", "parcel", "pay", "run", "ship"]
    assert {span.trace_id.hex() for span in there.spans} == {trace_id("o1")}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in there.spans)
    assert {"quire.records", "quire.step_seconds", "quire.effects"} <= set(there.metrics)


async def test_prometheus_reads_the_metrics_and_a_stranger_gets_none() -> None:
    async with opened() as client:
        token, _ = await make_token(client.ledger, "prom", Role.VIEWER)
        await client.start("publish", {"keyword": 'say "hi"\\n'}, id="a1")
        async with calling(client, loopback=False, base="http://q.example.org") as http:
            stranger = await http.get("/metrics")
            mine = {"Authorization": f"Bearer {token}"}
            first = await http.get("/metrics", headers=mine)
            await client.work()
            await client.halt("order", reason="x")
            second = await http.get("/metrics", headers=mine)

    assert stranger.status_code == 401
    assert first.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "quire_runs_total" not in first.text
    families = {family.name: family for family in text_string_to_metric_families(second.text)}
    [records] = families["quire_records"].samples
    assert (
        records.labels == {"workflow": "publish", "step": "review", "status": "NEEDS_APPROVAL"} and records.value == 1
    )
    steps = {s.labels["step"]: s.value for s in families["quire_step_seconds"].samples if s.name.endswith("_count")}
    assert steps == {"draft": 1, "review": 1}
    [run] = families["quire_runs"].samples
    assert run.labels["outcome"] == "asked" and run.value == 1
    assert [(s.labels["scope"], s.value) for s in families["quire_halted"].samples] == [("order", 1)]


def test_labels_are_escaped_and_do_not_grow_with_the_work() -> None:
    meter = Meter()
    for number in range(100):
        about = {"quire.workflow": 'a"b\\c\nd'}
        meter.add(Span("effect", "s", "p", f"piece ceo {number}", 0.0, 1.0, "done", about, "", number))
    text = meter.text([Sample("quire_workers", 2, ())])
    [family] = [one for one in text_string_to_metric_families(text) if one.name == "quire_effects"]
    [sample] = family.samples
    assert sample.labels == {"workflow": 'a"b\\c\nd', "effect": "piece", "outcome": "done"} and sample.value == 100


def _line(**extra: Any) -> dict[str, Any]:
    record = logging.LogRecord("quire.audit", logging.WARNING, "f", 1, "cancel %r", ("o1",), None)
    for name, value in extra.items():
        setattr(record, name, value)
    found: dict[str, Any] = json.loads(JsonLines("my-project").format(record))
    return found


def test_a_log_line_is_what_google_cloud_logging_reads() -> None:
    plain, told = _line(), _line(record_id="o1/parcel~1/0", actor="ann", act="cancel")
    assert plain["severity"] == "WARNING" and plain["message"] == "cancel 'o1'" and plain["time"].endswith("Z")
    assert "logging.googleapis.com/trace" not in plain
    assert told["logging.googleapis.com/trace"] == f"projects/my-project/traces/{trace_id('o1')}"
    assert told["logging.googleapis.com/labels"] == {"record_id": "o1/parcel~1/0", "act": "cancel", "actor": "ann"}
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("quire", logging.ERROR, "f", 1, "bad", (), sys.exc_info())
    text = JsonLines().format(record)
    assert "\n" not in text and json.loads(text)["error"] == "ValueError: two\nlines" and "Traceback" not in text


def test_json_lines_are_asked_for_or_come_with_cloud_run() -> None:
    assert wanted({"logs": "json"}, {}) and wanted({}, {"K_SERVICE": "quire"})
    assert not wanted({}, {}) and not wanted({"logs": "text"}, {"K_SERVICE": "quire"})


@pytest.mark.parametrize("told", [{"otpl": "x"}, {"logs": "xml"}, {"otlp": "localhost:4318"}])
def test_what_telemetry_cannot_be_is_one_sentence(told: dict[str, str]) -> None:
    with pytest.raises(InputError, match="telemetry"):
        checked_telemetry(told)


def test_off_loads_nothing() -> None:
    script = (
        "import asyncio, sys, quire\n"
        "from quire import Workflow\n"
        "flow = Workflow('w')\n"
        "@flow.step\n"
        "async def one(run): return 1\n"
        "async def main():\n"
        "    async with quire.aopen('memory:', workflows=[flow]) as client:\n"
        "        await client.start(flow, {}, id='a')\n"
        "        await client.work()\n"
        "asyncio.run(main())\n"
        "bad = [n for n in sys.modules if n.startswith(('opentelemetry', 'quire.surfaces.telemetry', 'prometheus'))]\n"
        "assert not bad, bad\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
