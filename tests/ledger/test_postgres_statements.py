"""Batches go as arrays of what differs in them; what is alike goes once."""

from __future__ import annotations

from itertools import product

import pytest

from quire.ledger.postgres import writer as postgres_write
from quire.ledger.postgres.statements import MOST_SHAPES, STORED, insert
from quire.ledger.postgres.writer import filled

TYPES = {"record_id": "text"} | {f"c{number}": "bigint" for number in range(8)}


def test_a_column_that_is_alike_in_all_rows_is_no_array() -> None:
    statement = insert("t", {"record_id": "text", "n": "bigint", "kind": "text"})

    assert statement.many((False, False, True)) == (
        'INSERT INTO t ("record_id", "n", "kind") SELECT * FROM '
        '(SELECT "record_id", "n", $3::text FROM unnest($1::text[], $2::bigint[]) AS each ("record_id", "n")) '
        'AS new ("record_id", "n", "kind") '
    )


def test_of_one_statement_only_so_many_kinds_are_made_and_the_plain_one_always() -> None:
    statement = insert("t", TYPES)
    shapes = [(False, *alike) for alike in product([True, False], repeat=8)]

    made = [shape for shape in shapes if statement.many(shape) is not None]

    assert len(made) == MOST_SHAPES + 1 and made[-1] == (False,) * 9
    assert [shape for shape in shapes if statement.many(shape) is not None] == made


def test_new_records_are_sent_without_the_columns_in_which_none_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_write, "_ADD_RECORDS", {})

    assert filled({"record_id": ["a", "b"], "note": [None, None], "entry": [None, "{}"]}, 2) == ("record_id", "entry")
    statement = postgres_write._ADD_RECORDS["record_id", "entry"]
    assert statement.one.startswith('INSERT INTO records ("record_id", "entry") SELECT')


def test_of_the_kinds_of_new_records_only_so_many_have_a_statement_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_write, "_ADD_RECORDS", {})
    names = list(STORED)
    kinds = [{name: [None] if name == empty else [1] for name in names} for empty in names]

    given = [filled(columns, 1) for columns in kinds]

    assert [len(columns) for columns in given] == [len(names) - 1] * MOST_SHAPES + [len(names)] * (
        len(names) - MOST_SHAPES
    )
    assert len(postgres_write._ADD_RECORDS) == MOST_SHAPES + 1
