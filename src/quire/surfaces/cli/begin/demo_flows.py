"""The flows of ``quire demo``: articles are drafted, reviewed by a person, posted once, and archived."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from quire import Act, NotDone, Run, Workflow, effect

#: The world outside: every post that is ever made is one line of this file, whoever makes it.
SITE = Path(__file__).with_name("site.jsonl")


class Article(BaseModel):
    keyword: str
    draft: str = ""
    url: str = ""


async def write_draft(keyword: str) -> str:
    await asyncio.sleep(0.1)  # noqa: TID251 - a model that thinks
    return f"Ten things to know about {keyword}."


def posts() -> list[dict[str, str]]:
    return [json.loads(line) for line in SITE.read_text().splitlines()] if SITE.exists() else []


async def find_post(act: Act, keyword: str, text: str) -> str | NotDone:
    """Did it happen? Asked only when nobody knows, because a worker died in the middle of it."""
    found = [post for post in posts() if post["key"] == act.key]
    return found[0]["url"] if found else NotDone()


@effect(probe=find_post, timeout="2s", settle="0s")
async def put_online(act: Act, keyword: str, text: str) -> str:
    """Irreversible: the site takes whatever comes, also twice."""
    url = f"https://example.org/{keyword.replace(' ', '-')}"
    with SITE.open("a") as site:
        site.write(json.dumps({"key": act.key, "record_id": act.record_id, "url": url, "text": text}) + "\n")
    await asyncio.sleep(0.4)  # noqa: TID251 - the site answers slowly
    return url


publish = Workflow("publish", data=Article, result=str)


@publish.step(then="review")
async def draft(run: Run[Article]) -> None:
    run.data.draft = await run.call(write_draft, run.data.keyword)


@publish.step(then=["post", "archive"])
async def review(run: Run[Article]) -> Literal["post", "archive"]:
    answer = await run.ask(
        f"Publish {run.data.keyword!r}?", show=run.data.draft, edit=["draft"], by="editors", expires="3d"
    )
    return "post" if answer else "archive"


@publish.step(then="archive", cap=3)
async def post(run: Run[Article]) -> None:
    run.data.url = await run.once(put_online, run.data.keyword, run.data.draft)


@publish.step
async def archive(run: Run[Article]) -> str:
    return run.data.url
