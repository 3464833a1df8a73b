"""Signals, and waits that are answered: by a signal, a receipt, children, or before they began. Pure."""

from __future__ import annotations

from quire.model.change import Applied, Conflict, Refused, Send, Verdict
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.receipt import Kind, Receipt, Stage, key_of
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Signal
from quire.model.wait import On, Wait, dump_waits, load_waits
from quire.rules import adoption, moves, orders
from quire.rules.draft import Draft
from quire.workflows.fanout import met

_WAITING = (Status.WAITING, Status.NEEDS_APPROVAL)


def send(draft: Draft, sent: Send) -> Verdict:
    """Give a signal to the wait of its name, or keep it until there is such a wait."""
    if draft.view.sealed:
        return Refused("sealed", orders.sealed_text(draft.view.sealed))
    row = draft.record(sent.record_id)
    if row is None:
        return Conflict(None, draft.now)
    if (known := draft.signal(sent.signal_id)) is not None and not _same(known, sent):
        # What happened outside may concern several records: the id of it is kept apart for each.
        sent = replace(sent, signal_id=key_of(sent.record_id, sent.name, sent.signal_id))
        known = draft.signal(sent.signal_id)
    if known is not None:
        return Applied(row, draft.now, again=True)
    if row.ended:
        return Refused("ended", f"{sent.record_id!r} takes no signals: it is {row.status}")
    if orders.held_back(draft, row):
        return Refused("halted", orders.halted_text(row.workflow, orders.halt_of(draft, row.workflow)))
    body = {"signal": sent.name, "id": sent.signal_id} | ({"by": sent.by} if sent.by else {})
    row = draft.put(row, row, [Line("signalled", dump(body))], sent.signal_id)
    signal = Signal(sent.signal_id, sent.record_id, sent.name, sent.value, draft.now, row.log_seq, None)
    draft.signals[signal.signal_id] = signal
    if row.status in _WAITING:
        for wait in load_waits(row.waits):
            if wait.on is On.SIGNAL and wait.name == sent.name:
                _take(draft, signal, wait, row)
                row = replace(row, facts=row.facts + 1)
                go = moves.wake(row, draft.now, wait.key, f"signal {sent.name}")
                row = draft.put(row, go.image, go.lines, sent.signal_id)
                break
    return Applied(row, draft.now)


def _same(signal: Signal, sent: Send) -> bool:
    return (signal.record_id, signal.name) == (sent.record_id, sent.name)


def _take(draft: Draft, signal: Signal, wait: Wait, record: Record) -> None:
    """Let the wait take the signal: its value becomes the receipt of the wait."""
    draft.signals[signal.signal_id] = replace(signal, taken_by=wait.key)
    draft.receipts[wait.key] = Receipt(
        key=wait.key,
        record_id=record.record_id,
        step=record.step,
        visit=record.visit,
        name=wait.name,
        kind=Kind.WAIT,
        stage=Stage.DONE,
        value=signal.value,
        nonce=signal.signal_id,
        seq=record.log_seq,
        at=draft.now,
        done_at=draft.now,
    )


def wake(draft: Draft, row: Record, key: str, why: str, change_id: str) -> Record:
    """Make the record due if it waits for this key, and no halt keeps it from going on."""
    if row.status not in _WAITING or orders.held_back(draft, row):
        return row
    if not any(wait.key == key for wait in load_waits(row.waits)):
        return row
    go = moves.wake(row, draft.now, key, why)
    return draft.put(row, go.image, go.lines, change_id)


# -- waits that are answered before they begin -----------------------------------------------------------------


def answered_already(draft: Draft, image: Record, lines: list[Line]) -> Record:
    """Do not let a record wait for something that has come already (protocol 4)."""
    if image.waits is None or image.status not in _WAITING:
        return image
    if adoption.asked(image) is not None:
        return image  # whatever has come, a person says whether it goes on
    waits = load_waits(image.waits)
    signals = draft.signals_of(image.record_id) if any(wait.on is On.SIGNAL for wait in waits) else []
    answered: list[Wait] = []
    for wait in waits:
        if wait.on is On.SIGNAL:
            taken = next((signal for signal in signals if signal.name == wait.name), None)
            if taken is not None:
                signals.remove(taken)
                _take(draft, taken, wait, image)
                image = replace(image, facts=image.facts + 1)
                answered.append(wait)
        elif _has_come(draft, image, wait):
            answered.append(wait)
    if not answered:
        return image
    # The wait for children stays: the next pass finds by it which children they are.
    left = dump_waits(wait for wait in waits if wait not in answered or wait.on is On.CHILDREN)
    lines.append(Line("woken", dump({"by": f"{answered[0].on} {answered[0].name}".strip()})))
    return replace(image, status=Status.PENDING, due_at=draft.now, waits=left, question=None)


def _has_come(draft: Draft, image: Record, wait: Wait) -> bool:
    """Whether the children, the turn or the receipt of this wait are there. A signal is taken by ``_take`` instead."""
    if wait.on is On.CHILDREN and wait.generation is not None:
        fanin = draft.fanin(image.record_id, wait.generation)
        return fanin is None or met(fanin)
    if wait.on is On.TURN and image.parent_id is not None and image.generation is not None:
        fanin = draft.fanin(image.parent_id, image.generation)
        # Its turn may have come while a halt held it.
        return fanin is None or image.place is None or image.place < fanin.next_place
    if wait.on is On.DOUBT:
        receipt = draft.receipt(wait.key)
        return receipt is not None and receipt.stage is not Stage.INTENDED
    return False
