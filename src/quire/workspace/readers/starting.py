"""What all sources have in common: a record under an id made from the thing at Google, so that it starts once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from quire.client.client import Client
from quire.errors import AlreadyExists, Halted, InputError
from quire.model.codec import PLAIN, parse
from quire.workflows.workflow import Workflow

log = logging.getLogger("quire.workspace")


async def start(client: Client, workflow: Workflow[Any, Any, Any], record_id: str, value: object) -> bool:
    """Start a record, unless it is there. What does not fit its data is said in the log, and starts nothing."""
    data = value if isinstance(value, Mapping) else parse(PLAIN.encode(value, f"what starts {record_id!r}"))
    try:
        await client.start(workflow, dict(data), id=record_id)
    except AlreadyExists:
        return False
    except Halted:
        raise
    except InputError as error:
        log.error("nothing starts for %s: %s", record_id, error)
        return False
    return True
