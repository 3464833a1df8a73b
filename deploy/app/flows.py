"""A first workflow, to see that the deployment works: it greets, asks, and is done."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from quire import Run, Workflow


class Greeting(BaseModel):
    name: str
    text: str = ""


hello = Workflow("hello", data=Greeting, result=str)


@hello.step(then="review")
async def write(run: Run[Greeting]) -> None:
    run.data.text = f"Hello, {run.data.name}!"


@hello.step(then=["send", "drop"])
async def review(run: Run[Greeting]) -> Literal["send", "drop"]:
    answer = await run.ask("Send this greeting?", show=run.data.text, edit=["text"])
    return "send" if answer else "drop"


@hello.step
async def send(run: Run[Greeting]) -> str:
    return run.data.text


@hello.step
async def drop(run: Run[Greeting]) -> str:
    return ""
