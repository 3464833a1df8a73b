from __future__ import annotations

import contextlib
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from emulator_api import Api, Book, Refused, named, swap
from hectograph import Emulator

LOST = (http.client.HTTPException, OSError)


def fault(api: Api, **rule: Any) -> str:
    return str(api("POST", "/emulator/faults", rule)["faults"][0]["id"])


def left(api: Api) -> dict[str, int]:
    return {rule["id"]: rule["left"] for rule in api("GET", "/emulator/faults")["faults"]}


def test_a_reset_before_the_commit_changes_nothing(api: Api, book: Book) -> None:
    rule = fault(api, fault="reset", write=True)

    with pytest.raises(LOST):
        book.put("A1", [[1]])

    assert book.values("A1") == []
    assert left(api)[rule] == 0
    book.put("A1", [[2]])
    assert book.values("A1") == [["2"]]


def test_a_lost_answer_comes_after_the_commit(api: Api, book: Book) -> None:
    fault(api, fault="lost_answer", kind="values.update")

    with pytest.raises(LOST):
        book.put("A1", [[1]])

    assert book.values("A1") == [["1"]]


def test_errors_before_and_after_the_commit(api: Api, book: Book) -> None:
    fault(api, fault="error", status=500, write=True)
    with pytest.raises(Refused) as refused:
        book.put("A1", [[1]])
    assert refused.value.body["error"]["status"] == "INTERNAL"
    assert book.values("A1") == []

    fault(api, fault="error_after", status=503, write=True)
    with pytest.raises(Refused) as refused:
        book.put("A1", [[1]])
    assert refused.value.status == 503
    assert book.values("A1") == [["1"]]


def test_rules_are_counted_skipped_and_drawn_with_a_seed(api: Api, book: Book) -> None:
    def refused() -> bool:
        try:
            book.values("A1")
        except Refused:
            return True
        return False

    fault(api, fault="error", kind="values.get", count=2, skip=1)
    assert [refused() for _ in range(5)] == [False, True, True, False, False]
    fault(api, fault="error", kind="values.get", count=None, probability=0.5, seed=1)
    first = [refused() for _ in range(20)]
    api("DELETE", "/emulator/faults")
    assert not refused()
    fault(api, fault="error", kind="values.get", count=None, probability=0.5, seed=1)
    assert [refused() for _ in range(20)] == first
    assert 0 < sum(first) < 20


def test_a_rule_strikes_only_what_it_names(api: Api, book: Book) -> None:
    other = api.book("Other")
    fault(api, fault="error", book=other.book_id, method="PUT", path="valueInputOption=RAW", user="one")

    book.put("A1", [[1]])
    Book(Api(api.emulator, "two"), other.book_id).put("A1", [[1]])
    with pytest.raises(Refused):
        other.put("A1", [[1]])


@pytest.mark.parametrize(
    "rule", [{"fault": "nonsense"}, {"fault": "error", "tyop": 1}, {"fault": "error", "kind": "("}]
)
def test_a_rule_that_means_nothing_is_refused(api: Api, rule: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        api("POST", "/emulator/faults", rule)

    assert refused.value.status == 400


def test_rate_limits_as_recorded(api: Api, book: Book) -> None:
    fault(api, fault="rate_limit", kind="values.update")

    with pytest.raises(Refused) as refused:
        book.put("A1", [[1]])

    assert refused.value.status == 429
    error = refused.value.body["error"]
    assert error["message"] == (
        "Quota exceeded for quota metric 'Write requests' and limit 'Write requests per minute per user' of service "
        "'sheets.googleapis.com' for consumer 'project_number:1071851248496'."
    )
    assert error["status"] == "RESOURCE_EXHAUSTED"
    assert error["details"][0]["reason"] == "RATE_LIMIT_EXCEEDED"
    assert "retry-after" not in refused.value.headers
    fault(api, fault="rate_limit", kind="values.update", retry_after=7)
    with pytest.raises(Refused) as refused:
        book.put("A1", [[1]])
    assert refused.value.headers["retry-after"] == "7"


def test_drives_own_rate_limit(api: Api) -> None:
    fault(api, fault="drive_rate_limit", kind="drive.files.list")

    with pytest.raises(Refused) as refused:
        api("GET", "/drive/v3/files")

    [item] = refused.value.body["error"]["errors"]
    assert (refused.value.status, item["domain"], item["reason"]) == (403, "usageLimits", "userRateLimitExceeded")


def test_quotas_per_user_and_project_with_reads_and_writes_apart(emulator: Emulator, api: Api, book: Book) -> None:
    api("POST", "/emulator/clock", {"now": "2026-01-01T00:00:00+00:00"})
    api("POST", "/emulator/settings", {"quotas": True})

    statuses: set[int] = set()

    def tries(user: str, write: bool, times: int) -> int:
        own = Book(Api(emulator, user), book.book_id)
        done = 0
        for _ in range(times):
            try:
                own.put("A1", [[1]]) if write else own.values("A1")
            except Refused as refused:
                statuses.add(refused.status)
                continue
            done += 1
        return done

    assert tries("a", True, 62) == 60
    assert tries("a", False, 62) == 60
    assert sum(tries(user, True, 61) for user in "bcdef") == 240
    api("POST", "/emulator/clock", {"advance_seconds": 60})
    assert tries("a", True, 1) == 1
    assert statuses == {429}


def test_latency_moves_a_told_clock_and_waits_for_nobody(api: Api, book: Book) -> None:
    api("POST", "/emulator/clock", {"now": "2026-01-01T00:00:00+00:00"})
    fault(api, fault="latency", seconds=3600, kind="values.get")

    book.values("A1")

    assert api("GET", "/emulator/clock")["now"] == "2026-01-01T01:00:00.000Z"
    api("POST", "/emulator/settings", {"latency_seconds": 0.3})
    book.values("A1")
    assert api("GET", "/emulator/clock")["now"] == "2026-01-01T01:00:00.300Z"


def test_a_barrier_lets_all_writers_go_at_once_and_one_of_them_wins(emulator: Emulator, api: Api, book: Book) -> None:
    book.batch(named("h0"))
    parties = 6
    for round_ in range(5):
        fault(api, fault="barrier", parties=parties, kind="batchUpdate", timeout_seconds=20)

        def commit(n: int, round_: int = round_) -> bool:
            try:
                Book(Api(emulator, f"w{n}"), book.book_id).batch(*swap(f"h{round_}", f"h{round_ + 1}"))
            except Refused as refused:
                return "No NamedRange with id" not in refused.message
            return True

        with ThreadPoolExecutor(parties) as pool:
            won = list(pool.map(commit, range(parties)))
        assert sum(won) == 1


def test_a_barrier_that_is_not_filled_opens_by_itself(api: Api, book: Book) -> None:
    fault(api, fault="barrier", parties=2, kind="values.update", timeout_seconds=0.05)

    book.put("A1", [[1]])

    assert book.values("A1") == [["1"]]


def test_stopping_frees_those_who_wait(book: Book) -> None:
    api = book.api
    fault(api, fault="barrier", parties=2, kind="values.update", timeout_seconds=60)

    def write() -> None:
        # Whether the answer still gets out depends on who is quicker.
        with contextlib.suppress(*LOST):
            book.put("A1", [[1]])

    waiting = threading.Thread(target=write)
    waiting.start()
    while not any(rule.waiting for rule in api.emulator.world.faults.rules.values()):
        waiting.join(0.01)

    api.emulator.stop()
    waiting.join(10)

    assert not waiting.is_alive()


def test_stale_reads_by_versions_and_by_seconds(api: Api, book: Book) -> None:
    api("POST", "/emulator/clock", {"now": "2026-01-01T00:00:00+00:00"})
    for n in range(4):
        api("POST", "/emulator/clock", {"advance_seconds": 10})
        book.put("A1", [[n]])

    fault(api, fault="stale_read", versions=2, kind="values.get")
    assert book.values("A1") == [["1"]]
    assert book.values("A1") == [["3"]]
    fault(api, fault="stale_read", seconds=15, kind="values.get")
    assert book.values("A1") == [["1"]]
    fault(api, fault="stale_read", seconds=1000, kind="spreadsheets.get$")
    assert book.meta()["properties"]["title"] == "Book"


def test_two_racing_batches_are_both_accepted_when_told_so(api: Api, book: Book) -> None:
    book.batch(named("h0"))
    fault(api, fault="race")

    book.batch(*swap("h0", "h1"))
    book.batch(*swap("h0", "h2"))
    with pytest.raises(Refused):
        book.batch(*swap("h0", "h3"))

    assert [item["namedRangeId"] for item in book.meta()["namedRanges"]] == ["h2"]


def test_a_sort_may_fail_with_500(api: Api, book: Book) -> None:
    book.put("A1", [["b"], ["a"]])
    sort = {"sortRange": {"range": {"sheetId": 0}, "sortSpecs": [{"dimensionIndex": 0, "sortOrder": "ASCENDING"}]}}
    fault(api, fault="sort_500")

    with pytest.raises(Refused) as refused:
        book.batch(sort)
    assert refused.value.status == 500
    assert book.values("A1:A2") == [["b"], ["a"]]
    book.batch(sort)
    assert book.values("A1:A2") == [["a"], ["b"]]


def test_the_ghost_of_a_deleted_name_refuses_a_later_batch(api: Api, book: Book) -> None:
    book.batch(named("h0"))
    fault(api, fault="ghost_name")
    book.batch({"deleteNamedRange": {"namedRangeId": "h0"}})

    with pytest.raises(Refused, match="a named range with that name already exists"):
        book.batch(named("h1"))
    api("DELETE", "/emulator/faults")
    book.batch(named("h1"))
    book.batch({"deleteNamedRange": {"namedRangeId": "h1"}}, named("h2"))


@pytest.mark.parametrize("atomic", [True, False])
def test_whether_a_bad_range_undoes_a_values_batch_is_a_switch(api: Api, book: Book, atomic: bool) -> None:
    api("POST", "/emulator/settings", {"switches": {"values_batch_atomic": atomic}})
    data = [{"range": "A1", "values": [[1]]}, {"range": "No!A1", "values": [[1]]}]

    with pytest.raises(Refused):
        api("POST", f"{book.path}/values:batchUpdate", {"valueInputOption": "RAW", "data": data})

    assert book.values("A1") == ([] if atomic else [["1"]])


def test_an_append_that_sees_an_old_grid_writes_over_the_last_row(api: Api, book: Book) -> None:
    book.append("A1", [["first"]])
    api("POST", "/emulator/settings", {"switches": {"append_sees_stale_grid": True}})

    book.append("A1", [["second"]])

    assert book.values("A1:A5") == [["second"]]


def test_callers_without_a_token_are_refused_when_told_so(api: Api, book: Book) -> None:
    api("POST", "/emulator/settings", {"switches": {"require_auth": True}})
    connection = http.client.HTTPConnection(api.emulator.host, api.emulator.port, timeout=10)
    connection.request("GET", book.path)
    answer = connection.getresponse()
    connection.close()

    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer realm=")


def test_counters_by_kind_user_and_request(api: Api, book: Book) -> None:
    api("DELETE", "/emulator/counters")
    book.values("A1")
    book.batch(named("h"))

    found = api("GET", "/emulator/counters")["counters"]
    assert found["kind sheets.spreadsheets.values.get"] == 1
    assert (found["reads"], found["writes"]) == (1, 1)
    assert found["request addNamedRange"] == 1
    assert found["user one"] == 2
    assert found["status 200"] == 2


@pytest.mark.parametrize(
    ("path", "reason", "status", "domain", "text"),
    [
        (
            "/calendar/v3/calendars/primary/events",
            "quotaExceeded",
            403,
            "usageLimits",
            "Calendar usage limits exceeded.",
        ),
        ("/calendar/v3/calendars/primary/events", "fullSyncRequired", 410, "calendar", "a full sync is required"),
        ("/gmail/v1/users/me/profile", "userRateLimitExceeded", 403, "usageLimits", "User Rate Limit Exceeded"),
        ("/gmail/v1/users/me/profile", "accessNotConfigured", 403, "usageLimits", "is disabled"),
        ("/drive/v3/files", "sharingRateLimitExceeded", 403, "global", "Rate limit exceeded."),
        ("/v1/forms/x", "RESOURCE_EXHAUSTED", 429, None, "Resource has been exhausted"),
    ],
)
def test_a_refusal_is_named_by_its_reason_alone(
    api: Api, path: str, reason: str, status: int, domain: str | None, text: str
) -> None:
    fault(api, fault="error", reason=reason)

    with pytest.raises(Refused) as refused:
        api("GET", path)

    error = refused.value.body["error"]
    assert refused.value.status == error["code"] == status and text in error["message"]
    if domain is None:
        assert "errors" not in error and error["status"] == "RESOURCE_EXHAUSTED"
    else:
        assert (error["errors"][0]["reason"], error["errors"][0]["domain"]) == (reason, domain)


def test_a_search_by_a_property_is_late_and_one_by_folder_is_not(api: Api) -> None:
    api("POST", "/emulator/clock", {"now": "2026-03-04T12:00:00Z"})
    api("POST", "/emulator/settings", {"switches": {"list_lag": 60}})
    made = api("POST", "/drive/v3/files", {"name": "x", "appProperties": {"quire": "k"}})
    by_mark = "appProperties has { key='quire' and value='k' }"

    assert api("GET", "/drive/v3/files", q="'root' in parents")["files"][0]["id"] == made["id"]
    assert api("GET", "/drive/v3/files", q=by_mark)["files"] == []
    api("POST", "/emulator/clock", {"advance_seconds": 61})
    assert api("GET", "/drive/v3/files", q=by_mark)["files"][0]["id"] == made["id"]


@pytest.mark.parametrize(("word", "kept"), [("both", 3), ("last", 2)])
def test_of_two_permissions_at_once_the_last_one_counts_where_the_switch_says_so(
    api: Api, word: str, kept: int
) -> None:
    api("POST", "/emulator/clock", {"now": "2026-03-04T12:00:00Z"})
    api("POST", "/emulator/settings", {"switches": {"permission_race": word}})
    key = api("POST", "/drive/v3/files", {"name": "x"})["id"]
    for who in ("a@example.com", "b@example.com"):
        body = {"type": "user", "role": "reader", "emailAddress": who}
        api("POST", f"/drive/v3/files/{key}/permissions", body, sendNotificationEmail="false")
    found = api("GET", f"/drive/v3/files/{key}/permissions", fields="permissions(emailAddress)")["permissions"]
    assert len(found) == kept and found[-1] == {"emailAddress": "b@example.com"}
