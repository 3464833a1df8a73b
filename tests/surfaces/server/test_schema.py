"""The OpenAPI document holds: no crash, and no answer that is not in it, for requests that nobody would think of."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from quire.client.client import Client
from quire.surfaces.server import Limits
from tests.surfaces.server.conftest import Site, running

pytestmark = pytest.mark.slow

FREE = Limits(rate=1e6, burst=1_000_000, stranger_rate=1e6, stranger_burst=1_000_000, mistake_rate=1e6)

#: The parser's own answer to headers that HTTP does not allow, which older versions of schemathesis send: such a
#: request never reaches the API.
NOT_HTTP = b"Invalid HTTP request received."

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def aimed(case: Any, number: int) -> None:
    """Every second request is aimed at something that is there, so that more than the look-up is tried."""
    if number % 2:
        known = {"record_id": "o1", "workflow": "order", "signal": "paid", "name": "shop"}
        given = case.path_parameters or {}
        case.path_parameters = {name: known.get(name, value) for name, value in dict(given).items()}
        if isinstance(case.body, dict) and isinstance(case.body.get("workflow"), str):
            case.body["workflow"] = "order"


def explored(site: Site, mode: GenerationMode, examples: int) -> Counter[int]:
    """Send requests that the document allows, or not, and see that the answers are in it. Answers their statuses."""
    schema = schemathesis.openapi.from_url(f"{site.url}/api/openapi.json")
    seen: Counter[int] = Counter()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.path.startswith(("/api/stream", "/mcp", "/a2a/")):
            continue  # it never ends, or speaks a protocol of its own; they have tests of their own

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def try_it(case: Any) -> None:
            aimed(case, seen.total())
            answer = case.call()
            seen[answer.status_code] += 1
            if answer.status_code == 400 and answer.content == NOT_HTTP:
                return
            case.validate_response(answer, checks=CHECKS)

        with contextlib.suppress(Unsatisfiable):  # an address without parameters cannot be called wrongly
            try_it()
    return seen


# Schemathesis draws from the module random while it makes wrong requests.
@pytest.mark.filterwarnings("ignore:Do not use the .random. module:hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
def test_no_crash_and_no_answer_that_is_not_documented(tmp_path: Path, mode: GenerationMode) -> None:
    with running(f"sqlite:///{tmp_path}/ledger.db", limits=FREE) as site:

        async def some(client: Client) -> None:
            await client.start("order", {}, id="o1")

        site.do(some)
        seen = explored(site, mode, 4)

    assert seen.total() > 120
    assert len(seen) >= 4
