"""What a start answers: a record by its id, and its result to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from quire.client.finishing import finished
from quire.clock import Span
from quire.errors import ResultMissing
from quire.model.codec import PLAIN
from quire.model.record import Record, Status
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from quire.client.client import Client

R = TypeVar("R", default=Any)


class Handle(Generic[R]):
    """A record that was started, and its result to come."""

    def __init__(self, client: Client, record: Record, workflow: Workflow[Any, R, Any] | None) -> None:
        self.record_id = record.record_id
        #: The record as it was when its start had landed.
        self.started = record
        self._client = client
        self._workflow = workflow

    async def record(self) -> Record:
        return await self._client.get(self.record_id)

    async def result(self, *, timeout: Span | None = None) -> R:
        """Wait until the record ends and return its result; an end without one raises ``ResultMissing``.

        A client that was opened with the record's workflow works for it meanwhile, unless a worker of it runs already.
        Without a ``timeout``, a record that only a person or a signal from outside can move raises ``ResultMissing``
        at once, and says so. The cause of a ``ResultMissing`` is the ``StepFailed`` that says what the step raised, and
        where. If the time is over before the end, the message names the last error and the next try.
        """
        record = await finished(self._client, self.record_id, timeout)
        if record.status is not Status.DONE:
            why = f": {record.last_error}" if record.last_error else ""
            cause = await self._client.failed(record)
            raise ResultMissing(f"{self.record_id!r} has no result: it ended as {record.status}{why}") from cause
        type_ = self._workflow.result if self._workflow is not None else PLAIN
        value: R = type_.decode(record.result or "null", f"the result of {self.record_id!r}")
        return value
