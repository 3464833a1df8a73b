"""Rows of SQL stores: the fields of a row type are the columns of its table, in order; only a few need turning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quire.errors import LedgerError
from quire.ledger.blobs import NAME_LENGTH, blob_of, is_reference, kept_apart
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import field_names, field_places, from_values, replace
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker

#: Tables by the type of their rows, and which columns are their key.
TABLES: dict[type[Any], tuple[str, tuple[str, ...]]] = {
    Record: ("records", ("record_id",)),
    Receipt: ("receipts", ("key",)),
    Signal: ("signals", ("signal_id",)),
    Fanin: ("fanins", ("parent_id", "generation")),
    Worker: ("workers", ("worker_id",)),
    Control: ("controls", ("scope",)),
    Bucket: ("buckets", ("name",)),
    Setting: ("settings", ("name",)),
    Event: ("events", ("seq",)),
}

#: Columns that may hold the reference of a blob instead of their text.
LONG: dict[type[Any], tuple[str, ...]] = {
    Record: ("data", "entry", "result", "waits"),
    Receipt: ("args", "value", "prepared"),
    Signal: ("value",),
    Event: ("body",),
}

#: Columns of a record that change together: a store writes the families of which a column changed, and leaves the
#: others, among them long data and what indexes look at, where they are. Few, so that there are few statements.
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("step", "visit", "due_at", "run_until"),
    ("status", "worker"),
    ("run_id",),
    ("data", "entry"),
    ("attempt", "losses", "waits", "question", "last_error"),
    ("result",),
    ("counted", "epoch", "fanouts", "ending", "priority", "cancel", "facts", "open_intents"),
    ("workflow", "parent_id", "generation", "place", "note", "dedupe_key", "started_as", "code_version", "created_at"),
)
#: The columns of a line that its writer gives; the store itself counts the lines.
LINE_COLUMNS = tuple(name for name in field_names(Event) if name != "seq")
#: These change with every change.
EVERY_TIME = ("version", "updated_at", "log_seq", "log_hash")

_STATUS = {status.value: status for status in Status}
_STATUS_AT = field_places(Record)["status"]
_COUNTED_AT = field_places(Record)["counted"]
_KIND = {kind.value: kind for kind in Kind}
_KIND_AT = field_places(Receipt)["kind"]
_STAGE = {stage.value: stage for stage in Stage}
_STAGE_AT = field_places(Receipt)["stage"]


def key_of(row: Any) -> tuple[Any, ...]:
    """Return the key of a row, by which its table is gone through."""
    return tuple(getattr(row, name) for name in TABLES[type(row)][1])


def columns(type_: type[Any]) -> str:
    """Return the columns of a row type, as SQL."""
    return ", ".join(quoted(name) for name in field_names(type_))


def quoted(name: str) -> str:
    return f'"{name}"'


def record_of(row: Sequence[Any]) -> Record:
    values = list(row)
    try:
        values[_STATUS_AT] = _STATUS[values[_STATUS_AT]]
    except KeyError as error:
        raise _damaged("record", values[0], "status", error) from None
    values[_COUNTED_AT] = bool(values[_COUNTED_AT])
    return Record(*values)


def event_of(row: Sequence[Any]) -> Event:
    return Event(*row)


def _damaged(what: str, key: object, column: str, found: KeyError) -> LedgerError:
    return LedgerError(
        f"the ledger is damaged: its {what} {key!r} holds the {column} {found.args[0]!r}, which does not exist. See "
        "quire doctor; restore a copy"
    )


def receipt_of(row: Sequence[Any]) -> Receipt:
    values = list(row)
    try:
        values[_KIND_AT] = _KIND[values[_KIND_AT]]
        values[_STAGE_AT] = _STAGE[values[_STAGE_AT]]
    except KeyError as error:
        raise _damaged("receipt", values[0], "kind or stage", error) from None
    return Receipt(*values)


def fanin_of(row: Sequence[Any]) -> Fanin:
    fanin = from_values(Fanin, row)
    return replace(fanin, abandoned=bool(fanin.abandoned))


def control_of(row: Sequence[Any]) -> Control:
    control = from_values(Control, row)
    return replace(control, halted=bool(control.halted), paused=bool(control.paused))


_TURNED: dict[type[Any], Callable[[Sequence[Any]], Any]] = {
    Record: record_of,
    Receipt: receipt_of,
    Fanin: fanin_of,
    Control: control_of,
}


def row_of(type_: type[Any], row: Sequence[Any]) -> Any:
    """Return a row of this type from its columns."""
    turn = _TURNED.get(type_)
    return from_values(type_, row) if turn is None else turn(row)


def unnamed_blobs() -> str:
    """SQL: a blob that no row names. It looks at every row, so whoever asks looks first whether there are blobs."""
    named = [
        f"SELECT substr({quoted(column)}, 1, {NAME_LENGTH}) FROM {TABLES[type_][0]} "
        f"WHERE substr({quoted(column)}, 1, 1) = '@'"
        for type_, names in LONG.items()
        for column in names
    ]
    return f"hash NOT IN ({' UNION '.join(named)})"


def references(rows: Sequence[Any], type_: type[Any]) -> set[str]:
    """Return the blobs that these rows name."""
    texts = (getattr(row, name) for name in LONG.get(type_, ()) for row in rows)
    return {blob_of(text) for text in texts if text and text[0] == "@"}


def has_reference(row: Any, type_: type[Any]) -> bool:
    """Return whether a long value of the row is a reference."""
    return any(is_reference(getattr(row, name)) for name in LONG.get(type_, ()))


def with_blobs(row: Any, type_: type[Any], lookup: Callable[[str, str], str]) -> Any:
    """Return the row with its long values put back."""
    if type_ not in LONG or not has_reference(row, type_):
        return row
    where = f"{TABLES[type_][0]} {key_of(row)[0]!r}"
    texts = {name: getattr(row, name) for name in LONG[type_]}
    return replace(row, **{name: lookup(text, where) for name, text in texts.items() if is_reference(text)})


def put_aside(
    row: Any,
    type_: type[Any],
    limit: int,
    blobs: dict[str, str],
    keep: Callable[[str, dict[str, str]], str] = kept_apart,
) -> Any:
    """Return the row with its long values put aside into ``blobs``, by ``keep``."""
    for name in LONG.get(type_, ()):
        text = getattr(row, name)
        if text is not None and len(text) > limit:
            row = replace(row, **{name: keep(text, blobs)})
    return row
