"""Eight mistakes that a type checker finds. Each line that must be reported says so; nothing else may be."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from quire import Act, NotDone, Run, Workflow, effect, workflow


class Article(BaseModel):
    keyword: str


class Lead(BaseModel):
    company: str


class Deps: ...


publish = Workflow("publish", data=Article, result=str, deps=Deps)


@publish.step(then="post")  # MISTAKE: wrong data type of a step
async def draft(run: Run[Lead, Deps]) -> None: ...


@publish.step(then=["post", "archive"])
async def review(run: Run[Article, Deps]) -> Literal["post", "archive"]:
    if run.data.keyword:
        return "pots"  # MISTAKE: a successor not in the Literal
    return "archive"


@publish.step(then=["post", "archive"])
async def again(run: Run[Article, Deps]) -> Literal["post", "archive"]:  # MISTAKE: falling off the end of a branch
    if run.data.keyword:
        return "post"


@effect
async def send(act: Act[Deps], to: str, copies: int) -> str:
    return to


@workflow
async def score(run: Run[Lead, Deps]) -> int:
    return 1


@publish.step(then="archive")
async def post(run: Run[Article, Deps]) -> None:
    await run.once(send, 7, 1)  # MISTAKE: wrong argument to an effect
    await run.once(send, "ann")  # MISTAKE: missing argument
    await run.map(score, [Article(keyword="x")])  # MISTAKE: wrong item type to map
    number: int = await run.once(send.named("number"), "ann", 1)  # MISTAKE: wrong type of the effect's value
    assert number


async def find(act: Act[Deps], to: int) -> str | NotDone:
    return NotDone()


@effect(probe=find)  # MISTAKE: a probe whose signature differs from its act
async def tell(act: Act[Deps], to: str) -> str:
    return to
