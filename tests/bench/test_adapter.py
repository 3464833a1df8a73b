"""What runs in a peer's own environment: counting, copying rows, profiling."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from bench.peers._adapter import Adapter, Filler, Tally, clone_rows, text_of, thin
from bench.peers._profiled import Profiler, apart, module_of


def test_copies_of_rows_have_ids_of_their_own_and_everything_else_in_common() -> None:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE records (record_id TEXT PRIMARY KEY, data TEXT, seq INTEGER DEFAULT 7)")
        db.execute("INSERT INTO records VALUES ('a', 'x', 1), ('b', 'y', 2), ('c', 'z', 3)")
        new = {"record_id": "record_id || '~' || copy.i"}
        db.execute(clone_rows("records", new, ["data"], "record_id IN ('a', 'b')", 1, 3))
        found = db.execute("SELECT record_id, data, seq FROM records WHERE record_id LIKE '%~%' ORDER BY 1").fetchall()
    assert found == [(f"{name}~{number}", data, 7) for name, data in ("ax", "by") for number in (1, 2, 3)]


def test_a_store_is_filled_in_parts_that_do_not_overlap() -> None:
    filler = Filler()
    assert filler.span(200_000, 500) == (1, 399)
    assert filler.span(1_000_000, 999_999) == (400, 1999)  # the first call decides what is copied


def test_a_tally_knows_too_few_and_too_many() -> None:
    tally = Tally()
    tally.expect(2)
    tally.hit()
    with pytest.raises(TimeoutError, match="1 of 2 bodies ran"):
        tally.wait(0)
    tally.hit()
    tally.wait(0)
    tally.hit()
    with pytest.raises(AssertionError, match="3 bodies ran, 2 expected"):
        tally.check()


def test_a_body_that_labours_uses_the_processor_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "labour", 0.0)
    Adapter().labour(0.003)
    tally = Tally()
    begun = time.thread_time()
    tally.hit()
    assert (tally.count, time.thread_time() - begun >= 0.003) == (1, True)


def test_samples_are_thinned_but_the_last_one_stays() -> None:
    assert thin([[number, 0] for number in range(1001)], most=10)[-1] == [1000, 0]
    assert text_of(800, 1) == text_of(800, 1) != text_of(800, 2)


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("/x/lib/python3.11/site-packages/quire/rules/draft.py", "quire/rules/draft.py"),
        ("/x/src/quire/run/passes.py", "quire/run/passes.py"),
        ("/x/lib/python3.11/site-packages/psycopg/pq/_ctypes.py", "psycopg"),
        (threading.__file__, "threading"),
        ("<string>", "generated"),
    ],
)
def test_a_module_is_known_by_its_file(path: str, module: str) -> None:
    assert module_of(path) == module


def test_waiting_and_the_store_are_told_apart_from_other_functions_in_c() -> None:
    assert apart("<method 'poll' of 'select.epoll' objects>") == "~waiting"
    assert apart("<method 'execute' of 'sqlite3.Connection' objects>") == "~sqlite"
    assert apart("<built-in method builtins.len>") == ""


def test_a_profile_sees_the_threads_that_begin_after_it() -> None:
    profiler = Profiler()
    try:
        profiler.start()
        worker = threading.Thread(target=lambda: sum(divmod(number, 7)[0] for number in range(20_000)), name="other")
        worker.start()
        worker.join()
        found = profiler.modules()
    finally:
        profiler.close()
    assert found["other"]["other"] > 0
