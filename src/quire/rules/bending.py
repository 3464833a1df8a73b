"""What a move becomes where a halt, a request to cancel or an effect in doubt stands in its way. Pure."""

from __future__ import annotations

from quire.model.change import Refused
from quire.model.event import Line
from quire.model.record import Record, Status, with_side_fields
from quire.model.row import replace
from quire.model.wait import On, load_waits
from quire.rules import effects, moves, orders
from quire.rules.draft import Draft
from quire.rules.orders import HALTED
from quire.rules.outcome import Yielded

#: The image that lands, and whether it is as the change asks for: else nothing that rides with the change does.
Bent = tuple[Record, bool]


def bent(draft: Draft, current: Record, image: Record, lines: list[Line]) -> Bent | Refused:
    """Return what the move becomes. ``lines`` are those of the move, and are changed with it."""
    held = current.status is Status.RUNNING
    outcome = _of_holder(draft, current, image, lines) if held else _of_person(draft, current, image, lines)
    if not current.open_intents or isinstance(outcome, Refused):
        return outcome
    return _over_doubt(draft, current, outcome, lines)


def _over_doubt(draft: Draft, current: Record, outcome: Bent, lines: list[Line]) -> Bent | Refused:
    """A record does not leave its step, and does not end, while an effect of it is in doubt (protocol 18)."""
    image, _ = outcome
    held = current.status is Status.RUNNING
    stays = not image.ended and image.visit == current.visit
    if stays or (not held and image.ended and orders.edits(lines)):
        return outcome
    base = replace(current, version=image.version, updated_at=draft.now, last_error=image.last_error, epoch=image.epoch)
    if held:
        lines.clear()
    elif orders.cancels(lines):
        # It is asked what happened first. The request is kept beside it, and obeyed when that is known.
        request = orders.request_of(lines)
        base = replace(base, cancel=orders.joined(current.cancel, request))
        if orders.undoes(request):
            base = replace(base, epoch=draft.epoch)  # ordered after any halt, as for a record that runs
        lines[:] = [Line("cancel_asked", base.cancel or "")]
    else:
        return Refused(
            "intent",
            f"{current.open_intents} effects of {current.record_id!r} are in doubt; "
            f"say first whether they happened (quire resolve {current.record_id} --happened | --not)",
        )
    return effects.doubted(draft, base, lines), False


def _of_holder(draft: Draft, current: Record, image: Record, lines: list[Line]) -> Bent:
    """Return what a request to cancel and a halt leave of a move of the worker that holds the record."""
    if current.cancel is not None and orders.gives_way(current, image, current.cancel):
        stop = moves.obeyed(current, draft.now, current.cancel)
        lines[:] = stop.lines
        return with_side_fields(stop.image, current), False
    if image.epoch < current.epoch:
        # The halt was taken back while it ran. A holder that stops for it gives the record back instead.
        image = replace(image, epoch=current.epoch)
        if orders.only_stops(image):
            go = moves.settle(current, Yielded("resumed"), draft.now)
            lines[:] = go.lines
            return go.image, False
    if not orders.held_back(draft, image):
        return image, True
    if orders.only_stops(image):
        # It keeps what it waits for, and what else it stopped with: it may be revived where it stood.
        lines[:] = [HALTED]
        return replace(moves.halted(current), version=image.version, updated_at=draft.now), False
    if not image.ended:
        lines.append(HALTED)
        return moves.halted(image), False
    return image, True


def _of_person(draft: Draft, current: Record, image: Record, lines: list[Line]) -> Bent | Refused:
    """Return what a request to cancel and a halt leave of a move of a record that nobody holds."""
    if image.cancel is not None and orders.taken_back(lines) and (current.ended or orders.cancelled(draft, current)):
        image = replace(image, cancel=None)
    if image.ended:
        if orders.edits(lines) and not current.ended:
            lines.insert(0, HALTED)  # what held by definition is written down
        return image, True
    halt = orders.halt_of(draft, image.workflow)
    keeps = halt is not None or orders.revives(lines)  # a halt that was ordered since holds what is brought back
    epoch = max(image.epoch, current.epoch) if keeps else draft.epoch
    if orders.may_be_obeyed(image) and image.cancel is not None:
        stop = moves.obeyed(current, draft.now, image.cancel)
        lines += stop.lines
        # A halt that came after the request holds what is to be undone; one that came before it does not.
        return replace(with_side_fields(stop.image, current), epoch=max(image.epoch, current.epoch)), False
    says = orders.says(lines)
    if halt is not None or (says and not current.ended and orders.halted(draft, current)):
        return _while_halted(draft, current, image, lines, says=says)
    return replace(image, epoch=epoch), True


def _while_halted(draft: Draft, current: Record, image: Record, lines: list[Line], *, says: bool) -> Bent | Refused:
    """A halted record takes what people say about effects in doubt, and goes on with nothing else."""
    asks = any(wait.on is On.DOUBT for wait in load_waits(current.waits))
    if not asks or not (says or (current.open_intents and orders.cancels(lines))):
        return Refused("halted", orders.halted_text(image.workflow, orders.halt_of(draft, image.workflow)))
    if current.open_intents:
        return image, True
    lines.append(HALTED)
    return moves.halted(image), True
