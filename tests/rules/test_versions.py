"""What a record's data were is rebuilt from its log: never wrong, and back to the start if the lines are here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from quire.errors import IllegalMove
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.record import Record, Status, new_record
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.rules import moves as transition
from quire.rules.difference import MOST_CHARACTERS, MOST_COMPARED, same
from quire.rules.moves import Move
from quire.rules.outcome import Broke, Done, Next, Saved, Stopped, Tried, Waits, Yielded
from quire.rules.versions import Versions, versions

NOW = 1000.0
QUESTION = Wait(On.QUESTION, "question", "ok", about={"text": "ok?"})
LONG = "x" * MOST_CHARACTERS
Verb = Callable[[Record, str], Move]

#: Every way in which a record goes on, with data that it writes where it writes any.
VERBS: dict[str, Verb] = {
    "edit": lambda record, data: transition.edit(record, NOW, "ann", data),
    "answer": lambda record, data: transition.answered(record, NOW, "question", {"by": "bob"}, data),
    "claim": lambda record, data: transition.claim(record, NOW, "w1", "run_1", 60.0),
    "next": lambda record, data: transition.settle(record, Next("b", data), NOW),
    "rest": lambda record, data: transition.settle(record, Next("b", data, rests=True), NOW),
    "done": lambda record, data: transition.settle(record, Done("1", data), NOW),
    "ask": lambda record, data: transition.settle(record, Waits((QUESTION,), data), NOW),
    "wait": lambda record, data: transition.settle(record, Waits((Wait(On.SIGNAL, "s", "paid"),), data), NOW),
    "save": lambda record, data: transition.settle(record, Saved(data), NOW),
    "try": lambda record, data: transition.settle(record, Tried("429", 1.0), NOW),
    "break": lambda record, data: transition.settle(record, Broke("a bug"), NOW),
    "undo": lambda record, data: transition.settle(record, Broke("a bug", undo=True), NOW),
    "yield": lambda record, data: transition.settle(record, Yielded("time"), NOW),
    "stop": lambda record, data: transition.settle(record, Stopped("halted", undo=True), NOW),
    "wake": lambda record, data: transition.wake(record, NOW, "s", "signal paid"),
    "lose": lambda record, data: transition.lose(record, NOW, "gone"),
    "retry": lambda record, data: transition.retry(record, NOW, "ann"),
    "rewind": lambda record, data: transition.retry(record, NOW, "ann", step="a"),
    "cancel": lambda record, data: transition.cancel(record, NOW, "ann", "", undo=False),
    "move": lambda record, data: transition.move(record, NOW, "", "b", ["b"], rests=False, ends=False),
    "adopt": lambda record, data: transition.adopt(record, NOW, "ann", "copied", 1),
    "revive": lambda record, data: transition.revive(record, NOW, "ann", 1),
}
RUNS = frozenset({"next", "rest", "done", "ask", "wait", "save", "try", "break", "undo", "yield", "stop", "lose"})


class History:
    """A record with its log, and what its data really were at each version."""

    def __init__(self, data: Any) -> None:
        self.record = new_record(record_id="r", workflow="flow", step="a", data=dump(data), now=NOW, due_at=NOW)
        self.log: list[Event] = []
        self.were: dict[int, Any] = {}
        self._take(transition.start(self.record, NOW, "eve"))

    def _take(self, move: Move) -> None:
        self.record = move.image
        for line in move.lines:
            self.tell(line.kind, line.body)
        self.were[self.record.version] = parse(self.record.data)

    def tell(self, kind: str, body: str = "{}") -> None:
        n = len(self.log) + 1
        self.log.append(Event(n, "r", n, self.record.version, NOW + n, kind, body, None, "", ""))

    def do(self, verb: str, data: Any = None) -> History:
        if (self.record.status is Status.RUNNING) == (verb in RUNS):
            self._take(VERBS[verb](self.record, self.record.data if data is None else dump(data)))
        return self

    def versions(self, log: Sequence[Event] | None = None) -> Versions:
        return versions(self.record, reversed(self.log if log is None else log))


def told(found: Versions) -> list[tuple[int, str, str, Any]]:
    return [(one.version, one.kind, one.by, one.data.fields) for one in found.found]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1, width=16) | st.sampled_from(["", "a", LONG]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=3,
)
objects = st.dictionaries(st.sampled_from(["a", "b", "c", "__proto__"]), json_values, max_size=4)


@given(objects, st.lists(st.tuples(st.sampled_from(sorted(VERBS)), objects), max_size=14))
def test_what_is_told_of_any_version_is_what_its_data_were(
    data: dict[str, Any], acts: list[tuple[str, dict[str, Any]]]
) -> None:
    history = History(data)
    for verb, given_ in acts:
        # Most that is drawn does not fit the status: a claim comes before what only a worker does.
        if verb in RUNS and history.record.status in (Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL):
            history.do("claim")
        try:
            history.do(verb, given_)
        except IllegalMove:
            continue

    found, end = history.versions()
    assert end == "" and found[-1].version == 1
    assert found[0].data.fields == parse(history.record.data) and not found[0].data.unknown
    newer = history.record.version + 1
    for one in found:
        assert one.version < newer
        for version in range(one.version, newer):  # it holds until the next that is told
            real = history.were[version]
            assert same({k: v for k, v in real.items() if k not in one.data.unknown}, dict(one.data.fields))
        newer = one.version


@given(objects, st.lists(objects, max_size=6))
@example({"n": None}, [{}, {"n": None}, {"n": 1}, {"n": True}, {"n": 1.0}])
def test_edits_lead_back_to_the_start_whatever_the_data_are(data: dict[str, Any], edits: list[dict[str, Any]]) -> None:
    history = History(data)
    for edit in edits:
        history.do("edit", edit)

    found, end = history.versions()
    assert end == ""
    assert (found[-1].version, found[-1].kind, found[-1].by) == (1, "started", "eve")
    # Each version that differs from the one before it is there, and nothing is unknown but what was too long.
    differ = [n for n in history.were if n == 1 or not same(history.were[n], history.were[n - 1])]
    if not any(one.data.unknown for one in found):
        assert [one.version for one in reversed(found)] == differ
    for one in found:
        real = history.were[one.version]
        assert all(LONG in dump([at[name] for at in history.were.values() if name in at]) for name in one.data.unknown)
        assert same({k: v for k, v in real.items() if k not in one.data.unknown}, dict(one.data.fields))


def test_each_change_is_a_version_with_its_time_and_who_made_it() -> None:
    history = History({"n": 1}).do("claim").do("ask").do("edit", {"n": 2}).do("edit", {"n": 2})
    history.do("claim").do("ask").do("answer", {"n": 3})
    history.do("claim").do("try").do("claim").do("save", {"n": 4}).do("done", {"n": 4, "end": True})

    found, end = history.versions()
    assert told(Versions(found, end)) == [
        (13, "done", "", {"n": 4, "end": True}),
        (12, "saved", "", {"n": 4}),
        (8, "answered", "bob", {"n": 3}),
        (4, "edited", "ann", {"n": 2}),
        (1, "started", "eve", {"n": 1}),
    ]
    assert found[2].at == NOW + 8
    assert end == ""


def test_what_held_at_a_version_is_found() -> None:
    history = History({"n": 1}).do("claim").do("next", {"n": 2}).do("claim").do("done", {"n": 3})
    found = history.versions()
    held = {version: one and dict(one.data.fields) for version in range(7) for one in [found.at(version)]}
    assert held == {0: None, 1: {"n": 1}, 2: {"n": 1}, 3: {"n": 2}, 4: {"n": 2}, 5: {"n": 3}, 6: {"n": 3}}


def test_a_step_that_wrote_nothing_is_gone_over() -> None:
    history = History({"n": 1}).do("edit", {"n": 2}).do("claim").do("ask")
    assert [one.version for one in history.versions().found] == [2, 1]


def test_data_that_are_too_long_to_compare_end_it() -> None:
    history = History({"n": 1, "text": "x" * MOST_COMPARED}).do("edit", {"n": 2, "text": "x" * MOST_COMPARED})
    found, end = history.versions()
    assert [one.version for one in found] == [2]
    assert "its line does not hold the whole change" in end


def test_two_changes_of_what_is_too_long_are_two_versions() -> None:
    history = History({"text": "a"}).do("edit", {"text": LONG}).do("edit", {"text": LONG + LONG}).do("edit", {})
    assert [(one.version, set(one.data.unknown)) for one in history.versions().found] == [
        (4, set()),
        (3, {"text"}),
        (2, {"text"}),
        (1, {"text"}),
    ]


def test_a_value_that_was_too_long_is_unknown_until_a_line_tells_it_again() -> None:
    history = History({"n": 1, "text": "a"}).do("edit", {"n": 1, "text": "b"})
    history.do("edit", {"n": 2, "text": LONG}).do("edit", {"n": 3, "text": LONG})

    found, _ = history.versions()
    assert [(one.version, dict(one.data.fields), set(one.data.unknown)) for one in found] == [
        (4, {"n": 3, "text": LONG}, set()),
        (3, {"n": 2, "text": LONG}, set()),
        (2, {"n": 1, "text": "b"}, set()),
        (1, {"n": 1, "text": "a"}, set()),
    ]


def test_more_long_fields_than_are_named_end_it() -> None:
    many = {f"f{n}": LONG for n in range(25)}
    found, end = History({}).do("edit", many).versions()
    assert [one.version for one in found] == [2]
    assert "its line does not hold the whole change" in end


def test_a_line_that_does_not_fit_the_data_ends_it() -> None:
    history = History({"n": 1}).do("edit", {"n": 2})
    history.record = replace(history.record, data='{"n":7}')
    found, end = history.versions()
    assert [one.version for one in found] == [2]
    assert "before version 2 (edited)" in end


def test_lines_that_are_not_here_end_it_and_newer_ones_are_left_out() -> None:
    history = History({"n": 1}).do("edit", {"n": 2}).do("edit", {"n": 3})
    short = history.versions(history.log[2:])
    assert told(short) == [(3, "edited", "ann", {"n": 3}), (2, "", "", {"n": 2})]
    assert short.end == "What the data were before version 2 is not kept: the older lines are not here."
    gap = history.versions([history.log[0], history.log[2]])
    assert told(gap) == told(short)

    before, known = history.record, history.versions()
    history.do("edit", {"n": 4})
    assert versions(before, reversed(history.log)) == known
    behind = versions(history.record, reversed(history.log[:3]))  # the newest line is not here yet
    assert told(behind) == [(4, "", "", {"n": 4})]


def test_what_stands_beside_a_change_does_not_end_it() -> None:
    history = History({"n": 1}).do("edit", {"n": 2})
    history.tell("signalled", '{"signal":"paid"}')
    history.tell("noted", '"a text"')
    history.tell("effect.done", '{"effect":"post"}')
    history.tell("cancel_asked", '{"by":"ann","undo":true}')
    assert [one.version for one in history.versions().found] == [2, 1]


def test_data_that_are_no_object_have_no_versions() -> None:
    found, end = History([1]).do("edit", [2]).versions()
    assert found == ()
    assert end
