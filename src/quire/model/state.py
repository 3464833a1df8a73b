"""The state that a workflow declares and in which a record stands. Pure."""

from __future__ import annotations

from quire.model.record import Record, Status
from quire.model.wait import On, load_waits


def declared_state(record: Record) -> str:
    """The declared state in which the record rests or has ended; empty: it is in none.

    A record that ends by a function keeps no step (``rules.moves``), so a step beside DONE is the state of its end.
    """
    if record.status is Status.DONE:
        return record.step
    if record.status is Status.WAITING and any(wait.on is On.REST for wait in load_waits(record.waits)):
        return record.step
    return ""


def shown_status(record: Record) -> str:
    """What people see as its status: the declared state, or how the engine has it."""
    return declared_state(record) or record.status.value
