"""From a keyword to a published article: draft, approval, publish, archive; with receipts and a pointer to its metrics.

quire up examples/publishing.py
quire start article keyword="analytics dashboard" --id kw_analytics --follow    # exit 7: a person is asked
quire list --needs-me
quire approve kw_analytics --edit draft="A better text."
quire show kw_analytics
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from quire import Act, NotDone, Retry, Run, Workflow, effect


class Article(BaseModel):
    keyword: str
    draft: str = ""
    url: str = ""
    #: Where a later workflow finds the numbers.
    metrics: str = ""


@dataclass
class Site:
    """Stands for the CMS: posts by their idempotency key."""

    posts: dict[str, str] = field(default_factory=dict)


def make_deps() -> Site:
    """What the steps work with: the worker calls this once, when it starts."""
    return Site()


async def write(keyword: str) -> str:
    return f"All about {keyword}."


async def find_post(act: Act[Site], text: str) -> str | NotDone:
    return f"https://example.org/{act.key[:8]}" if act.key in act.deps.posts else NotDone()


@effect(probe=find_post, fenced=True)
async def put_online(act: Act[Site], text: str) -> str:
    act.deps.posts.setdefault(act.key, text)
    return f"https://example.org/{act.key[:8]}"


article = Workflow("article", data=Article, result=str, deps=make_deps)


@article.step(then="APPROVE")
async def DRAFT(run: Run[Article, Site]) -> None:  # noqa: N802 - steps are words that people see
    run.data.draft = await run.call(write, run.data.keyword)


@article.step(then=["PUBLISH", "DRAFT", "REJECTED"])
async def APPROVE(run: Run[Article, Site]) -> Literal["PUBLISH", "DRAFT", "REJECTED"]:  # noqa: N802
    answer = await run.ask(
        f"Publish {run.data.keyword!r}?",
        show=run.data.draft,
        edit=["draft"],
        choices=["approve", "rewrite", "reject"],
        expires="3d",
    )
    match answer.choice:
        case "approve":
            return "PUBLISH"
        case "rewrite":
            return "DRAFT"
        case _:
            return "REJECTED"


@article.step(then="ARCHIVE", retry=Retry(5))
async def PUBLISH(run: Run[Article, Site]) -> None:  # noqa: N802
    run.data.url = await run.once(put_online, run.data.draft)


@article.step
async def ARCHIVE(run: Run[Article, Site]) -> str:  # noqa: N802
    run.data.metrics = f"metrics/{run.record_id}.json"
    return run.data.url


article.state("REJECTED")
