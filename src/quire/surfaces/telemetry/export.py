"""OpenTelemetry: spans and metrics to a collector over OTLP/HTTP. The only module that knows the library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from quire import __version__
from quire.surfaces.telemetry.following import Traced
from quire.surfaces.telemetry.metrics import KINDS, Sample, samples

METRIC_SECONDS = 60.0
_SECONDS = 10.0
_SCOPE = InstrumentationScope("quire", __version__)
_KINDS = {"model": SpanKind.CLIENT, "effect": SpanKind.CLIENT}


def _resource() -> Resource:
    return Resource.create({"service.name": "quire", "service.version": __version__})


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class Export:
    """Sends spans when it is asked to, and metrics every minute."""

    def __init__(self, spans: SpanExporter, reader: MetricReader) -> None:
        self._spans = spans
        self._resource = _resource()
        self._provider = MeterProvider([reader], resource=self._resource)
        self._gauges: list[Sample] = []
        meter = self._provider.get_meter("quire", __version__)
        self._made: dict[str, Any] = {}
        for name, (kind, what) in KINDS.items():
            unit = "s" if name.endswith("_seconds") else ""
            name_there = name.removesuffix("_total").replace("quire_", "quire.", 1)
            if kind == "counter":
                self._made[name] = meter.create_counter(name_there, unit, what)
            elif kind == "histogram":
                self._made[name] = meter.create_histogram(name_there, unit, what)
            else:
                meter.create_observable_gauge(name_there, [self._observed(name)], unit, what)

    @classmethod
    def otlp(cls, endpoint: str) -> Export:
        base = endpoint.rstrip("/")
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{base}/v1/metrics", timeout=_SECONDS), export_interval_millis=METRIC_SECONDS * 1000
        )
        return cls(OTLPSpanExporter(f"{base}/v1/traces", timeout=_SECONDS), reader)

    def _observed(self, name: str) -> Any:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(one.value, dict(one.labels)) for one in self._gauges if one.name == name]

        return observe

    def stands(self, gauges: Iterable[Sample]) -> None:
        """How the ledger stands, for the next time that metrics are sent."""
        self._gauges = list(gauges)

    def send(self, found: Sequence[Traced]) -> bool:
        """Send these; False: they did not arrive, as far as anybody knows. Blocks."""
        made = [self._readable(one) for one in found]
        if made and self._spans.export(made) is not SpanExportResult.SUCCESS:
            return False
        for one in found:
            for sample in samples(one.span):
                instrument = self._made[sample.name]
                labels = dict(sample.labels)
                if KINDS[sample.name][0] == "counter":
                    instrument.add(sample.value, labels)
                else:
                    instrument.record(sample.value, labels)
        return True

    def _readable(self, one: Traced) -> ReadableSpan:
        span = one.span
        status = Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET)
        return ReadableSpan(
            span.name,
            context=_context(one.trace_id, span.span_id),
            parent=_context(one.trace_id, span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes={"quire.kind": span.kind, **span.attributes},
            kind=_KINDS.get(span.kind, SpanKind.INTERNAL),
            status=status,
            start_time=int(span.start * 1e9),
            end_time=int(span.end * 1e9),
            instrumentation_scope=_SCOPE,
        )

    def close(self) -> None:
        """Send what is left. Blocks."""
        self._provider.shutdown()
        self._spans.shutdown()
