"""Intents, receipts and doubts: what of an effect may be written down, and when. Pure.

An effect begins with the commit of its *intent* and ends with that of its *receipt*. The receipt is a fact: only its
own intent fences it, and it lands whatever became of the record (protocol 2). Answers of another kind (calls, sleeps,
signals, questions, places in a loop) ride with a move, or stand beside the image as facts.

An intent may be *parked* first: written down with all that the act will get, and not allowed to act. It rides with
the move that asks people about it. A person releases or drops exactly what is parked: the nonce says which one. Only
a released one may be intended. Nobody acts on the other stages, so a record ends, moves on or is undone over them.

Where something new belongs:
- ``may_begin`` decides whether an intent may be committed: a new limit, such as a budget, is asked there.
- ``_intended`` writes an intent beside the record; ``_before`` writes one that may not act yet, and what people decide.
- ``_STAGES`` lists into which stage a receipt may pass: a new stage needs its pairs there.
- ``bending.bent`` decides what a record does that would leave its step over open intents; it asks by ``doubted``.
"""

from __future__ import annotations

from quire.model.change import Applied, Change, Conflict, Refused, Verdict
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.receipt import BEFORE, Kind, Receipt, Stage
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.rules import children, claims, ending, moves, orders, waiting
from quire.rules.draft import Draft
from quire.rules.lines import LineKind

#: What an effect's receipt may become: what was done stays done, or is undone; what is undone stays so (protocol 2).
_STAGES = frozenset(
    {
        (Stage.INTENDED, Stage.DONE),
        (Stage.INTENDED, Stage.VOID),
        (Stage.VOID, Stage.DONE),
        (Stage.DONE, Stage.UNDONE),
    }
)
_ACTS = (Kind.ONCE, Kind.UNDO)
#: Where nothing has begun under a key, an act may be intended; nothing that is under way or done is parked.
_INTENDED_AFTER = (Stage.RELEASED, Stage.VOID, Stage.UNDONE)
_NOT_PARKED_AFTER = (Stage.INTENDED, Stage.DONE)


# -- completed effects, which land whatever became of the record -----------------------------------------------


def completed(draft: Draft, change: Change, current: Record) -> tuple[Record, bool]:
    """Write down effects that were done, undone or resolved. Return the row, and whether any receipt has landed."""
    lines: list[Line] = []
    landed = False
    wakes: list[str] = []
    row = current
    for receipt in change.receipts:
        if receipt.kind not in _ACTS or not _is_completed(receipt):
            continue
        known = draft.receipt(receipt.key)
        if known is None:
            continue
        body = {"effect": receipt.name, "key": receipt.key}
        if known.nonce != receipt.nonce and known.stage is not Stage.VOID:
            if receipt.stage is Stage.DONE:
                lines.append(Line("effect.twice", dump(body | {"value": receipt.value, "by": receipt.worker})))
                landed = True
            continue
        if (known.stage, receipt.stage) not in _STAGES and not receipt.gives_value(known):
            landed |= receipt.stage in (known.stage, Stage.DONE)  # delivered again
            continue
        draft.receipts[receipt.key] = replace(receipt, seq=known.seq, at=known.at, done_at=draft.now)
        landed = True
        if known.stage is Stage.INTENDED:
            row = replace(row, open_intents=max(0, row.open_intents - 1))
            wakes.append(receipt.key)
        lines.append(Line(f"effect.{receipt.stage}", dump(body)))
    if lines or row is not current:
        row = draft.put(current, row, lines, change.change_id)
    if change.image is None:
        if orders.may_be_obeyed(row) and not draft.view.sealed:
            return ending.obey(draft, row, change.change_id), landed
        for key in wakes:
            row = waiting.wake(draft, row, key, "its receipt", change.change_id)
    return row, landed


def _is_completed(receipt: Receipt) -> bool:
    return receipt.stage is not Stage.INTENDED and receipt.stage not in BEFORE


# -- facts beside the image ------------------------------------------------------------------------------------


def facts(draft: Draft, change: Change, current: Record, *, landed: bool) -> Verdict:
    """Decide a change without an image: intents, answers and lines of the worker that holds the record."""
    rest = [r for r in change.receipts if r.kind not in _ACTS or not _is_completed(r)]
    if not rest and not change.lines:
        if landed:
            return Applied(current, draft.now, stop=stops(draft, current))
        return Conflict(current, draft.now)
    held = current.version == change.version and current.worker == change.worker
    if not held or current.status is not Status.RUNNING:
        return Conflict(current, draft.now)
    row = current
    again = bool(rest) and all(_known(draft, receipt) for receipt in rest)
    lines = [] if again else list(change.lines)
    before = (dict(draft.receipts), dict(draft.fanins), dict(draft.buckets)) if len(rest) > 1 else None
    for receipt in rest:
        refused = _fact(draft, receipt, row, change, lines)
        if isinstance(refused, Refused):
            if before is not None:  # the change lands whole or not at all
                draft.receipts, draft.fanins, draft.buckets = before
            return refused
        row = refused
    if row is not current and row.losses:
        row = replace(row, losses=0)  # it gets on: whatever killed its workers, this step is no trap for them
    return Applied(draft.put(current, row, lines, change.change_id), draft.now, again, stops(draft, row))


def stops(draft: Draft, row: Record) -> bool:
    """Whether the record's holder is to end its pass. Every verdict says so, so that it need not wait for its beat."""
    if row.status is not Status.RUNNING or row.step == UNDO:
        return False
    return row.cancel is not None or orders.held_back(draft, row)


def _known(draft: Draft, receipt: Receipt) -> bool:
    """Return whether this very receipt came before. The place in a loop is kept under one key and written anew."""
    known = draft.receipt(receipt.key)
    if known is None or known.nonce != receipt.nonce or receipt.kind is Kind.EACH:
        return False
    return not _sooner(receipt, known)


def _sooner(receipt: Receipt, known: Receipt) -> bool:
    """Return whether it is the same intent, but its actor has ended before its time: nobody acts on it any more."""
    return receipt.open and known.open and (receipt.act_by or 0.0) < (known.act_by or 0.0)


def _fact(draft: Draft, receipt: Receipt, row: Record, change: Change, lines: list[Line]) -> Record | Refused:
    """One intent or answer comes to stand beside the record. Return the row with it, or why it may not."""
    known = draft.receipt(receipt.key)
    if receipt.stage in BEFORE:
        refused = _refused_before(change, receipt, known)
        return refused if refused is not None else _before(draft, receipt, known, row, lines, len(lines))
    if known is not None and known.nonce == receipt.nonce and receipt.kind is not Kind.EACH:
        if _sooner(receipt, known):
            draft.receipts[receipt.key] = replace(known, act_by=receipt.act_by)
        return row  # this very change, sent again
    if receipt.stage is Stage.INTENDED:
        return _intended(draft, receipt, known, row, change, lines)
    if known is not None and known.stage is Stage.DONE and receipt.kind is not Kind.EACH:
        return row  # answered already: the first answer stands
    draft.receipts[receipt.key] = replace(receipt, seq=row.log_seq + len(lines), at=draft.now, done_at=draft.now)
    if receipt.kind is Kind.MAP:
        children.abandon(draft, row.record_id, receipt.key)
    return replace(row, facts=row.facts + 1)


def _intended(
    draft: Draft, receipt: Receipt, known: Receipt | None, row: Record, change: Change, lines: list[Line]
) -> Record | Refused:
    """An intent is committed before its act, unless something keeps the effect from beginning."""
    if known is not None and known.stage not in _INTENDED_AFTER:
        return Refused("intent", f"the effect {receipt.name!r} is {known.stage} already under this key")
    if (refused := may_begin(draft, row, change)) is not None:
        return refused
    lines.append(Line("effect.intended", dump({"effect": receipt.name, "key": receipt.key})))
    draft.receipts[receipt.key] = replace(receipt, seq=row.log_seq + len(lines), at=draft.now)
    return replace(row, open_intents=row.open_intents + 1, facts=row.facts + 1)


def refused_before(draft: Draft, change: Change) -> Refused | None:
    """Return why an intent that this move parks, releases or drops cannot be."""
    for receipt in change.receipts:
        if receipt.stage in BEFORE and (refused := _refused_before(change, receipt, draft.receipt(receipt.key))):
            return refused
    return None


def _refused_before(change: Change, receipt: Receipt, known: Receipt | None) -> Refused | None:
    """What is under way or done is not parked. Only what is parked is released or dropped, and only people release."""
    if receipt.stage is Stage.PARKED:
        taken = known is not None and known.stage in _NOT_PARKED_AFTER and known.nonce != receipt.nonce
        return Refused("intent", f"the effect {receipt.name!r} is under way or done already") if taken else None
    if known is None or known.nonce != receipt.nonce or known.stage not in (Stage.PARKED, receipt.stage):
        return Refused("parked", f"what was shown of effect {receipt.name!r} is not parked any more; look at it again")
    if receipt.stage is Stage.RELEASED and change.worker is not None:
        return Refused("parked", f"only a person releases the effect {receipt.name!r}")
    return None


def _before(
    draft: Draft, receipt: Receipt, known: Receipt | None, row: Record, lines: list[Line], place: int
) -> Record:
    """Write down an intent that may not act yet, or what people decided of it. Return the row with it.

    ``place``: of its line among those of the change. The last line of a move says what the move is.
    """
    if known is not None and known.nonce == receipt.nonce:
        if known.stage is not Stage.PARKED or receipt.stage is Stage.PARKED:
            return row  # this very change, sent again
        receipt = replace(known, stage=receipt.stage, done_at=draft.now)  # what was parked, whatever was sent
    kind = LineKind(f"effect.{receipt.stage}")
    lines.insert(place, Line(kind, dump({"effect": receipt.name, "key": receipt.key})))
    draft.receipts[receipt.key] = replace(receipt, seq=row.log_seq + place + 1, at=draft.now)
    new = receipt.stage is Stage.PARKED and receipt.visit == row.visit
    return replace(row, facts=row.facts + 1) if new else row


def _not_begun(draft: Draft, receipt: Receipt, known: Receipt | None, image: Record) -> Record:
    """Keep what was prepared for an act that could not begin, as one whose rate is used up. The next try gets it."""
    if known is not None and (known.stage not in _INTENDED_AFTER or known.nonce == receipt.nonce):
        return image
    draft.receipts[receipt.key] = replace(receipt, seq=image.log_seq, at=draft.now, done_at=draft.now)
    return replace(image, facts=image.facts + 1) if receipt.visit == image.visit else image


def may_begin(draft: Draft, row: Record, change: Change) -> Refused | None:
    """An effect begins when its intent commits: not after a halt, nor over a cancel request (protocol 15, 6).

    An intent that may begin takes the tokens of its rates.
    """
    if row.cancel is not None:
        return Refused("cancelled", f"{row.record_id!r} is to be cancelled; no effect begins")
    if orders.held_back(draft, row):
        return Refused("halted", f"{row.workflow!r} is halted; no effect begins")
    if change.rates:
        until = max(claims.token_at(draft, rate) for rate in change.rates)
        if until > draft.now:
            return Refused("rate", "the rate is used up", until=until)
        for rate in change.rates:
            claims.take_token(draft, rate)
    return None


# -- with a move -----------------------------------------------------------------------------------------------


def with_answers(draft: Draft, change: Change, image: Record, lines: list[Line]) -> Record:
    """Write down the answers (calls, sleeps, signals, questions) that ride with a move. Return the image with them."""
    count = 0
    for receipt in change.receipts:
        if receipt.stage in BEFORE:
            image = _before(draft, receipt, draft.receipt(receipt.key), image, lines, max(0, len(lines) - 1))
        if receipt.kind is Kind.ONCE and receipt.stage is Stage.VOID and change.worker is not None:
            image = _not_begun(draft, receipt, draft.receipt(receipt.key), image)
        if receipt.kind is Kind.MAP and receipt.stage is Stage.VOID:
            # A person retries the parent: the children that failed are done again.
            count += draft.receipt(receipt.key) is None and receipt.visit == image.visit
            draft.receipts[receipt.key] = receipt
        if receipt.stage is Stage.DONE and receipt.kind not in _ACTS:
            known = draft.receipt(receipt.key)
            if known is None or known.stage is not Stage.DONE or receipt.kind is Kind.EACH:
                seq = image.log_seq + len(lines)
                draft.receipts[receipt.key] = replace(receipt, seq=seq, at=draft.now, done_at=draft.now)
                count += receipt.visit == image.visit
                if receipt.kind is Kind.MAP:
                    children.abandon(draft, image.record_id, receipt.key)
    return replace(image, facts=image.facts + count) if count else image


def doubted(draft: Draft, image: Record, lines: list[Line]) -> Record:
    """Return the image of a record that asks a person about its open intents, instead of going on over them."""
    keys = [(receipt.key, receipt.name) for receipt in draft.intents(image.record_id)]
    lines.append(Line("doubted", dump({"effects": [name for _, name in keys]})))
    return moves.doubt(image, keys)
