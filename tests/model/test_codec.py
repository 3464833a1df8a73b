from __future__ import annotations

import dataclasses
import datetime
import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from quire.errors import ValueRefused
from quire.model import codec as codec_module
from quire.model.codec import PLAIN, codec, dump, parse


@dataclasses.dataclass
class Point:
    x: int
    tags: list[str]


class Article(BaseModel):
    title: str
    at: datetime.datetime
    cover: bytes = b""


UTC_NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


NOT_JSON = "{} is not JSON; annotate it with a type, or convert it first"
NOT_THE_SAME = "it does not survive the round trip, it comes back as {}; annotate its type"
NUL = "it holds a NUL character, which no store keeps"
NO_NUMBER = "NaN and Infinity are not JSON"

REFUSED: dict[str, tuple[Any, str]] = {
    "NUL": ("a\0b", NUL),
    "NUL after a backslash": ("a\\\0", NUL),
    "NUL in a key": ({"k\0": 1}, NUL),
    "lone surrogate": ("\ud800", "it holds a lone surrogate, which is not text"),
    "lone surrogate in a list": (["\udfff"], "it holds a lone surrogate, which is not text"),
    "NaN": (float("nan"), NO_NUMBER),
    "infinity": ({"x": float("-inf")}, NO_NUMBER),
    "set": ({1}, NOT_THE_SAME.format("[1]")),
    "tuple": ((1, 2), NOT_THE_SAME.format("[1, 2]")),
    "tuple within": ({"k": (1,)}, NOT_THE_SAME.format("{'k': [1]}")),
    "int key": ({1: "a"}, NOT_THE_SAME.format("{'1': 'a'}")),
    "None key": ({None: 1}, NOT_THE_SAME.format("{'None': 1}")),
    "bytes": (b"abc", NOT_THE_SAME.format("'abc'")),
    "bytes that are no text": (b"\xff", NOT_JSON.format("bytes")),
    "datetime": (datetime.datetime(2026, 1, 1), NOT_THE_SAME.format("'2026-01-01T00:00:00'")),  # noqa: DTZ001
    "decimal": (decimal.Decimal("1.1"), NOT_THE_SAME.format("'1.1'")),
    "dataclass": (Point(1, []), NOT_THE_SAME.format("{'x': 1, 'tags': []}")),
    "object": (object(), NOT_JSON.format("object")),
    "function": (dump, NOT_JSON.format("function")),
}

TAKEN: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "big int": 2**80,
    "negative big int": -(2**63) - 1,
    "beyond 2^53": 2**53 + 1,
    "float": 0.1 + 0.2,
    "whole float": 1.0,
    "large float": 1e308,
    "empty text": "",
    "empty dict": {},
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "line separators": "\u2028\u2029\r\n\t",
    "words that look like numbers": ["NaN", "Infinity", '"NaN', "-Infinity"],
    "a backslash before u0000": "\\u0000",
    "nested": {"a": [{"b": [None, 1, "c"]}]},
    "100 deep": nested(100),
    "1 MB": "é" * 500_000,
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_what_would_not_come_back_the_same_is_refused_in_a_sentence(value: Any, why: str) -> None:
    with pytest.raises(ValueRefused) as refusal:
        PLAIN.taken(value, "the data of 'r'")

    shown = repr(value)
    assert str(refusal.value) == f"the data of 'r' cannot be kept: {why} (it is {shown})"


def test_a_refusal_shows_the_beginning_of_a_long_value() -> None:
    with pytest.raises(ValueRefused) as refusal:
        PLAIN.taken("x" * 1000 + "\0", "the result")

    assert str(refusal.value).endswith(f"(it is '{'x' * 119}…)")


@pytest.mark.parametrize("value", TAKEN.values(), ids=TAKEN)
def test_what_is_taken_comes_back_the_same(value: Any) -> None:
    text, copy = PLAIN.taken(value, "the data")

    assert (copy, type(copy)) == (value, type(value))
    assert parse(text) == value


def test_the_copy_is_fresh() -> None:
    value = {"list": [1]}

    _, copy = PLAIN.taken(value, "the data")
    copy["list"].append(2)

    assert value == {"list": [1]}


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ValueRefused, match="list is not JSON"):
        PLAIN.taken(value, "the data")


def test_a_value_that_is_too_large_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec_module, "MOST_BYTES", 1000)

    with pytest.raises(ValueRefused) as refusal:
        PLAIN.taken("x" * 1999, "the data")

    assert str(refusal.value) == "the data cannot be kept: it has 2,001 characters, more than 1,000"


TYPED: dict[str, tuple[Any, Any]] = {
    "bytes": (bytes, b"\xff\x00"),
    "list of bytes": (list[bytes], [b"\0", b""]),
    "dataclass": (Point, Point(2**70, ["é"])),
    "pydantic model": (Article, Article(title="🙂", at=UTC_NOON)),
    "list of models": (list[Article], [Article(title="", at=UTC_NOON)]),
    "tuple": (tuple[int, str], (1, "a")),
    "set": (set[int], {1, 2}),
    "int keys": (dict[int, str], {1: "a"}),
    "datetime": (datetime.datetime, UTC_NOON),
    "decimal": (decimal.Decimal, decimal.Decimal("1.10")),
    "optional": (Point | None, None),
    "text that looks like a number": (int | str, "1"),
}


@pytest.mark.parametrize(("type_", "value"), TYPED.values(), ids=TYPED)
def test_a_value_of_an_annotated_type_comes_back_as_that_type(type_: Any, value: Any) -> None:
    text, copy = codec(type_).taken(value, "the data")

    assert (copy, type(copy)) == (value, type(value))
    assert codec(type_).decode(text, "the data") == value


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [(str, "a\0", NUL), (float, float("nan"), NO_NUMBER), (Article, Article(title="\0", at=UTC_NOON), NUL)],
    ids=["NUL", "NaN", "NUL in a model"],
)
def test_a_typed_value_is_refused_for_the_same_reasons(type_: Any, value: Any, why: str) -> None:
    with pytest.raises(ValueRefused, match=why):
        codec(type_).taken(value, "the data")


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        (Point, '{"x":1}', "the data of 'r' does not fit Point: tags: Field required"),
        (str, "3", "the data of 'r' does not fit str: Input should be a valid string"),
        (
            Point,
            '{"x":"no"}',
            (
                "the data of 'r' does not fit Point: x: Input should be a valid integer, "
                "unable to parse string as an integer (and 1 more)"
            ),
        ),
    ],
)
def test_a_text_that_does_not_fit_its_type_is_refused_with_the_first_problem(type_: Any, text: str, why: str) -> None:
    with pytest.raises(ValueRefused) as refusal:
        codec(type_).decode(text, "the data of 'r'")

    assert str(refusal.value) == why


def test_the_codec_of_a_type_is_made_once() -> None:
    assert codec(list[int]) is codec(list[int])


def test_an_annotation_that_cannot_be_hashed_has_a_codec_too() -> None:
    from typing import Annotated

    assert codec(Annotated[int, ["unhashable"]]).taken(1, "it") == ("1", 1)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_every_plain_value_comes_back_the_same(value: Any) -> None:
    text, copy = PLAIN.taken(value, "it")

    assert copy == value
    assert PLAIN.taken(copy, "it") == (text, copy)


@given(st.text() | st.lists(st.text(), max_size=3))
def test_a_text_is_taken_exactly_when_it_has_no_nul_and_no_lone_surrogate(value: Any) -> None:
    whole = value if isinstance(value, str) else "".join(value)
    bad = "\0" in whole or any("\ud800" <= letter <= "\udfff" for letter in whole)

    try:
        PLAIN.taken(value, "it")
    except ValueRefused:
        assert bad
    else:
        assert not bad
