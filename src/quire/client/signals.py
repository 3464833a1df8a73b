"""Which signals a workflow takes: the check of what is sent, before the ledger hears of it."""

from __future__ import annotations

from typing import Any

from quire.client.link import Link
from quire.errors import InputError, NotFound, did_you_mean
from quire.ledger import engine
from quire.model.codec import Codec, codec
from quire.model.fit import Fit
from quire.model.record import Record
from quire.model.wait import On, load_waits

#: The names of signals with the schema or the type of their values, and whether there are no others.
_Known = tuple[dict[str, tuple[Any, Codec | None]], bool]


async def check_signal(link: Link, record: Record, name: str, value: object) -> None:
    """Refuse a signal that nothing waits for, now or later, and a value that does not fit what waits for it.

    Fields that the type does not have are taken: what calls from outside often says more than anybody needs.
    """
    known, closed = await _signals_of(link, record.workflow)
    waits = {wait.name: wait for wait in load_waits(record.waits) if wait.on is On.SIGNAL}
    if name not in known and name not in waits:
        if not closed:
            return
        other = did_you_mean(name, known) if known else "; it waits for no signals"
        raise InputError(f"workflow {record.workflow!r} never waits for a signal {name!r}{other}")
    schema, type_ = known.get(name, (None, None))
    if name in waits and waits[name].about:
        schema, type_ = (waits[name].about or {}).get("value"), None
    if type_ is not None and not type_.plain:
        schema = type_.schema
    try:
        Fit(schema, "", type_, unknown=True).taken(value, "")
    except InputError as error:
        what = f"the value of signal {name!r} does not fit what {record.workflow!r} waits for"
        raise InputError(f"{what}: {error}") from error


async def _signals_of(link: Link, workflow: str) -> _Known:
    """Return the signals of a workflow, by its code or by what a worker registered."""
    known = link.registry.get(workflow)
    if known is not None:
        found, closed = known.signals()
        return {name: (None, codec(type_)) for name, type_ in found.items()}, closed
    try:
        declared = (await engine.definition(link.ledger, workflow)).get("signals")
    except NotFound:
        declared = None
    if declared is None:
        return {}, False
    return {name: (schema, None) for name, schema in declared["names"].items()}, bool(declared["closed"])
