from __future__ import annotations

from typing import Any

import pytest

from quire.model.record import CLAIMABLE, ENDED, PRIORITY_SECONDS, Record, Status, new_record, with_side_fields
from quire.model.row import replace


def a_record(**fields: Any) -> Record:
    return replace(new_record(record_id="r", workflow="flow", step="work", data="{}", now=100.0), **fields)


def test_every_status_has_ended_can_be_claimed_or_runs() -> None:
    assert ENDED | CLAIMABLE | {Status.RUNNING} == set(Status)
    assert not ENDED & CLAIMABLE


@pytest.mark.parametrize("status", Status)
def test_a_record_has_ended_in_these_statuses_only(status: Status) -> None:
    assert a_record(status=status).ended is (status in ENDED)


def test_a_point_of_priority_is_worth_a_minute_of_waiting() -> None:
    assert a_record(due_at=100.0, priority=2).rank == 100.0 - 2 * PRIORITY_SECONDS
    assert a_record(due_at=None, priority=2).rank is None


def test_the_same_workflow_and_data_make_the_same_start() -> None:
    same = a_record()
    other_data = new_record(record_id="r", workflow="flow", step="work", data="1", now=100.0)
    shifted = new_record(record_id="r", workflow="flow{", step="work", data="}", now=100.0)

    assert a_record().started_as == same.started_as
    assert len({same.started_as, other_data.started_as, shifted.started_as}) == 3


def test_an_image_takes_what_stands_beside_it_from_the_row() -> None:
    image = a_record(data='"new"', version=4, priority=9, facts=9, cancel="{}")
    row = a_record(data='"old"', version=3, priority=1, facts=2, log_seq=7, log_hash="h", open_intents=1)

    assert with_side_fields(image, row) == replace(row, data='"new"', version=4)
