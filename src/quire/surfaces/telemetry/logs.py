"""Log lines as JSON that Google Cloud Logging reads: severity, message, time, labels, and the trace of the record.

Any other collector reads them too: one object a line. A line belongs to a record's trace if it carries ``record_id``.
"""

from __future__ import annotations

import json
import logging
import os
import re
import traceback
from collections.abc import Mapping
from typing import Any

from quire.clock import iso
from quire.explain.spans import first_span, trace_id

_SEVERITIES = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARNING",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "CRITICAL",
}
#: What children's ids add to their parent's (``machine.fanout``).
_CHILD = re.compile(r"(?:/[^/]+~\d+/\d+)+$")
_LABELS = ("record_id", "act", "actor", "way", "address")


def wanted(settings: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> bool:
    """``logs = "json"`` asks for them; Cloud Run and its jobs, which read standard error, get them unasked."""
    return settings.get("logs") == "json" or (
        "logs" not in settings and ("K_SERVICE" in environ or "CLOUD_RUN_JOB" in environ)
    )


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, project: str = "", *, debug: bool = False) -> None:
        super().__init__()
        self._project = project or os.environ.get("GOOGLE_CLOUD_PROJECT", "")
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "severity": _SEVERITIES.get(record.levelno, "DEFAULT"),
            "message": record.getMessage(),
            "time": iso(record.created),
            "logger": record.name,
        }
        labels = {name: str(value) for name in _LABELS if (value := getattr(record, name, None))}
        if labels:
            entry["logging.googleapis.com/labels"] = labels
        if record_id := getattr(record, "record_id", None):
            trace = trace_id(_CHILD.sub("", str(record_id)))
            entry["logging.googleapis.com/trace"] = (
                f"projects/{self._project}/traces/{trace}" if self._project else trace
            )
            entry["logging.googleapis.com/spanId"] = first_span(str(record_id))
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = f"{record.exc_info[0].__name__}: {record.exc_info[1]}"
            if self._debug:
                entry["stack_trace"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=str)
