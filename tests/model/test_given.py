"""The same id and data are the same start, however they are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, Field

from quire import Run, Workflow, workflow
from quire.client.client import Client
from quire.errors import AlreadyExists
from quire.ledger import engine
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.codec import codec
from quire.model.given import bare
from quire.testing import ToldClock


class Author(BaseModel):
    name: str
    mail: str = ""


class Article(BaseModel):
    keyword: str
    words: float = 800
    author: Author | None = None
    others: list[Author] = Field(default_factory=list)
    draft: str = ""


@dataclass
class Order:
    what: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


@workflow
async def write(run: Run[Article]) -> None: ...


@workflow
async def buy(run: Run[Order]) -> None: ...


@workflow
async def plain(run: Run[dict[str, Any]]) -> None: ...


CASES: list[tuple[Workflow[Any, Any, Any], Any, dict[str, Any], dict[str, Any]]] = [
    (write, Article(keyword="a"), {"keyword": "a"}, {"keyword": "b"}),
    (write, Article(keyword="a", draft="x"), {"draft": "x", "keyword": "a"}, {"keyword": "a"}),
    (write, Article(keyword="a", words=5), {"keyword": "a", "words": 5}, {"keyword": "a", "words": 5.5}),
    (
        write,
        Article(keyword="a", author=Author(name="n"), others=[Author(name="m")]),
        {"keyword": "a", "author": {"name": "n"}, "others": [{"name": "m", "mail": ""}], "draft": ""},
        {"keyword": "a", "author": {"name": "n", "mail": "x"}, "others": [{"name": "m"}]},
    ),
    (buy, Order("a"), {"what": "a", "tags": [], "count": 1}, {"what": "a", "count": 2}),
    (plain, {"b": 1, "a": {"d": 2, "c": 3}}, {"a": {"c": 3, "d": 2}, "b": 1}, {"a": {"c": 3}, "b": 1}),
]


@pytest.mark.parametrize(("flow", "typed", "typed_in", "other"), CASES)
async def test_a_start_by_the_type_and_one_by_the_registered_definition_are_the_same(
    flow: Workflow[Any, Any, Any], typed: Any, typed_in: dict[str, Any], other: dict[str, Any]
) -> None:
    store = MemoryLedger(ToldClock())
    async with Client(store, workflows=[flow]) as knows, Client(store) as does_not:
        await engine.register(store, knows.registry)
        await knows.start(flow, typed, id="r")

        await does_not.start(flow.name, typed_in, id="r")
        await knows.start(flow, typed_in, id="r")

        [record] = await knows.find()
        assert record.version == 1
        with pytest.raises(AlreadyExists):
            await does_not.start(flow.name, other, id="r")
        with pytest.raises(AlreadyExists):
            await knows.start(flow, other, id="r")


def test_a_field_that_is_not_what_it_would_be_anyway_stays() -> None:
    schema = codec(Article).schema

    assert bare({"words": 800, "keyword": "", "draft": None}, schema) == {"keyword": "", "draft": None}
    assert bare({"b": 1.0, "a": 1.5, "unknown": [True]}, schema) == {"a": 1.5, "b": 1, "unknown": [True]}
