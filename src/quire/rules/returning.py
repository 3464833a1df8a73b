"""``resume --cancelled``: what a halt cancelled comes back, record by record. Pure.

The order is one small commit, like the halt itself. It leaves a row among the orders, under a scope of its own, for as
long as not all is back. The process that gave the order brings the records back. If that process dies on the way, the
housekeeping of any worker does the rest (``worker.returns``).
"""

from __future__ import annotations

from collections.abc import Iterable

from quire.model.change import Order, Standing
from quire.model.codec import dump, parse
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control
from quire.rules.draft import Draft

#: Before the scope of the order. No workflow's name begins so.
_PREFIX = "@resume "


def begin(draft: Draft, order: Order, known: Iterable[Control]) -> None:
    """Keep the order until all is back. What another halt holds at this moment is not concerned: its end decides."""
    controls = {control.scope: control for control in known} | draft.controls
    others = sorted(control.scope for control in controls.values() if control.halted)
    scope = _PREFIX + order.scope
    # ``floor``: the epoch in which the records go on. A halt that comes later has a higher one, and holds them again.
    draft.controls[scope] = Control(scope, False, draft.epoch, False, order.by, draft.now, dump(others))


def if_given(scope: str, standing: Standing) -> tuple[Control, tuple[Control, ...]]:
    """Return the order as it would be kept if it were given now, and all orders as they would be then."""
    then = tuple(replace(each, halted=False) if each.scope == scope else each for each in standing.controls)
    others = sorted(control.scope for control in then if control.halted)
    return Control(_PREFIX + scope, False, standing.epoch + 1, False, "", standing.now, dump(others)), then


def end(draft: Draft, order: Order) -> None:
    """All is back that this order brings back, unless the same was ordered again meanwhile."""
    scope = _PREFIX + order.scope
    known = draft.control(scope)
    if known is not None and known.floor == order.epoch:
        draft.controls[scope] = replace(known, floor=0)


def under_way(controls: Iterable[Control]) -> tuple[Control, ...]:
    """Return the orders that have not brought back all yet."""
    return tuple(control for control in controls if control.scope.startswith(_PREFIX) and control.floor)


def is_one(control: Control) -> bool:
    """Return whether this row is no halt or pause, but a resume that brings records back."""
    return control.scope.startswith(_PREFIX)


#: The same as ``under_way`` in SQL, over the table of the orders.
UNDER_WAY = f"substr(scope, 1, {len(_PREFIX)}) = '{_PREFIX}' AND floor > 0"


def scope_of(control: Control) -> str:
    """Return what was resumed: a workflow, or everything (``*``)."""
    return control.scope.removeprefix(_PREFIX)


def concerns(control: Control, record: Record, controls: Iterable[Control]) -> bool:
    """Whether this order brings the record back, if a halt cancelled it: no other halt holds it, nor did since."""
    own = {EVERYWHERE, record.workflow}
    if scope_of(control) not in own or own & set(parse(control.reason)):
        return False
    return not any(other.halted or other.floor > control.floor for other in controls if other.scope in own)
