"""Telemetry: traces and metrics made from the log, behind the commits. A worker does nothing for them.

``spans`` (pure) makes spans of a record's log, ``following`` reads the log, ``metrics`` (pure) counts and writes the
Prometheus format, ``export`` owns OpenTelemetry, ``logs`` writes lines that Google Cloud Logging reads.
"""

from __future__ import annotations
