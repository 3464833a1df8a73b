"""Dependencies: the factory that a workflow declares is called once in a process, and what it made is given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

import quire
from quire import Act, NotDone, Run, Workflow, aopen, effect, workflow
from quire.errors import DefinitionError
from quire.testing import Trial

Data = dict[str, Any]


class Site:
    """Something with a beginning and an end."""

    def __init__(self) -> None:
        self.open = True
        self.posts: list[str] = []


made: list[Site] = []


def _site() -> Site:
    made.append(Site())
    return made[-1]


def plain() -> Site:
    return _site()


async def waited() -> Site:
    return _site()


@contextmanager
def entered() -> Iterator[Site]:
    site = _site()
    yield site
    site.open = False


@asynccontextmanager
async def entered_later() -> AsyncIterator[Site]:
    site = _site()
    yield site
    site.open = False


def yielded() -> Iterator[Site]:
    site = _site()
    yield site
    site.open = False


async def yielded_later() -> AsyncIterator[Site]:
    """As anyio's contexts, it takes no other task at its end than at its beginning."""
    site, task = _site(), asyncio.current_task()
    yield site
    site.open = asyncio.current_task() is not task


@effect
async def put(act: Act[Site], text: str) -> str:
    act.deps.posts.append(text)
    return text


async def post(run: Run[Data, Site]) -> None:
    assert run.deps.open
    await run.once(put, run.record_id)


@pytest.fixture(autouse=True)
def none_made() -> None:
    made.clear()


FACTORIES = [plain, waited, entered, entered_later, yielded, yielded_later]


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: str(factory.__name__))
async def test_a_factory_is_called_once_and_what_it_made_is_cleaned_up(factory: Callable[[], Any]) -> None:
    first: Workflow[Any, Any, Any] = Workflow("first", deps=factory)
    first.step(post)
    second: Workflow[Any, Any, Any] = Workflow("second", deps=factory)
    second.step(post)

    async with aopen("memory:", workflows=[first, second]) as client:
        assert made == []  # whoever only starts records needs none
        await client.start(first, id="a")
        await client.work()
        await client.start(second, id="b")
        await client.work()
        [site] = made
        assert (site.posts, site.open) == (["a", "b"], True)

    assert site.open is (factory in (plain, waited))


def test_the_plain_client_cleans_up_too() -> None:
    flow: Workflow[Any, Any, Any] = Workflow("flow", deps=yielded_later)
    flow.step(post)

    with quire.open("memory:", workflows=[flow]) as q:
        q.start(flow, id="a")
        q.work()
        assert [site.open for site in made] == [True]

    assert [site.open for site in made] == [False]


async def test_each_workflow_has_its_own_and_what_is_given_stands_for_all() -> None:
    @workflow(deps=lambda: "the child's")
    async def child(run: Run[Data, str]) -> str:
        return run.deps

    @workflow(deps=lambda: "the parent's")
    async def parent(run: Run[Data, str]) -> list[str]:
        return [run.deps, await run.child(child, {})]

    async with Trial(parent, also=[child]) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.result == ["the parent's", "the child's"]

    async with Trial(parent, also=[child], deps="given") as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.result == ["given", "given"]


async def _take_back(act: Act[Site], text: str) -> None:
    act.deps.posts.remove(text)


@effect(undo=_take_back)
async def put_for_now(act: Act[Site], text: str) -> str:
    act.deps.posts.append(text)
    return text


async def test_what_a_child_did_is_taken_back_with_the_childs_dependencies() -> None:
    site = Site()

    @workflow(deps=lambda: site)
    async def child(run: Run[Data, Site]) -> None:
        await run.once(put_for_now, "a")

    @workflow(on_failure="undo")
    async def parent(run: Run[Data]) -> None:
        await run.child(child, {})
        assert site.posts == ["a"]
        raise quire.Fail("it is not wanted")

    async with Trial(parent, also=[child]) as trial:
        record = await trial.start({})
        await trial.settle()
        assert (record.status, site.posts) == ("CANCELLED", [])


def _of_the_workflow() -> Workflow[Any, Any, Any]:
    flow: Workflow[Any, Any, Any] = Workflow("article", deps=Site)

    @flow.step
    async def only(run: Any) -> None: ...

    return flow


def _of_a_step() -> Workflow[Any, Any, Any]:
    flow: Workflow[Any, Any, Any] = Workflow("article")
    flow.step(post)
    return flow


def _of_a_function() -> Workflow[Any, Any, Any]:
    @workflow
    async def article(run: Run[Data, Site]) -> None: ...

    return article


@pytest.mark.parametrize(
    ("flow", "who"),
    [
        (_of_the_workflow, "workflow 'article'"),
        (_of_a_step, "step 'post' of workflow 'article'"),
        (_of_a_function, "workflow 'article'"),
    ],
)
async def test_a_workflow_whose_dependencies_nothing_makes_is_refused_at_start(
    flow: Callable[[], Workflow[Any, Any, Any]], who: str
) -> None:
    async with aopen("memory:", workflows=[flow()]) as client:
        await client.start("article", id="a")

        with pytest.raises(
            DefinitionError, match=f"^{who} works with a Site, and nothing makes one: write .*make_deps"
        ):
            await client.work()

        assert (await client.get("a")).version == 1

    async with aopen("memory:", workflows=[flow()], deps=Site()) as client:
        await client.start("article", id="a")
        await client.work()
        assert (await client.get("a")).ended


async def test_a_table_of_states_needs_none_though_it_declares_some() -> None:
    flow: Workflow[Any, Any, Any] = Workflow("states", deps=Site)
    flow.state("OPEN", then="CLOSED")
    flow.state("CLOSED")

    async with aopen("memory:", workflows=[flow]) as client:
        await client.work()


async def test_an_effect_that_needs_what_its_workflow_has_not_is_refused_before_it_acts() -> None:
    flow: Workflow[Any, Any, Any] = Workflow("article")

    @flow.step
    async def only(run: Run[Data]) -> None:
        try:
            await run.once(put, "text")  # type: ignore[call-overload]  # the very mistake
        except NotDone:
            raise AssertionError from None

    async with Trial(flow) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR"
        assert record.error.startswith("effect 'put' works with a Site, and workflow 'article' has none: write")
        assert trial.acts(put) == [] and not record.record.facts


async def test_a_factory_that_fails_is_named_and_what_others_made_is_cleaned_up() -> None:
    async def unlucky() -> Site:
        raise KeyError("SITE_TOKEN")

    first: Workflow[Any, Any, Any] = Workflow("first", deps=yielded)
    first.step(post)
    second: Workflow[Any, Any, Any] = Workflow("second", deps=unlucky)
    second.step(post)

    async with aopen("memory:", workflows=[first, second]) as client:
        with pytest.raises(DefinitionError) as refused:
            await client.work()
        assert [site.open for site in made] == [True]

    told = "unlucky() of workflow 'second' did not make its dependencies: KeyError: 'SITE_TOKEN'"
    assert str(refused.value) == told
    assert [site.open for site in made] == [False]


async def test_a_clean_up_that_fails_is_told_and_keeps_no_other_from_its_own(caplog: pytest.LogCaptureFixture) -> None:
    def stubborn() -> Iterator[Site]:
        yield Site()
        raise OSError("it does not close")

    first: Workflow[Any, Any, Any] = Workflow("first", deps=yielded)
    first.step(post)
    second: Workflow[Any, Any, Any] = Workflow("second", deps=stubborn)
    second.step(post)

    with caplog.at_level(logging.ERROR):
        async with aopen("memory:", workflows=[first, second]) as client:
            await client.work()

    assert "the dependencies could not be cleaned up: OSError: it does not close" in caplog.text
    assert [site.open for site in made] == [False]


def _takes_one(settings: Data) -> Site:
    return Site()


@pytest.mark.parametrize(
    ("deps", "told"),
    [
        (Site(), "give the function that makes it, as in deps=make_deps (without calling it)"),
        (_takes_one, "the deps of workflow 'flow', _takes_one, takes (settings); it must take no argument"),
    ],
)
def test_what_makes_no_dependencies_is_refused_where_it_is_declared(deps: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Workflow("flow", deps=deps)

    assert told in str(refused.value)
