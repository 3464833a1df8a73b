"""``run.call``: how the value of a function is written and read."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from quire.run.calls import returns


class Adds:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, a: int, b: int) -> int:
        return a + b


class Text:
    def shout(self) -> list[str]:
        return ["HEY"]


def test_the_return_annotation_decides_whatever_the_callable_is_like() -> None:
    def plain() -> dict[str, int]:
        return {}

    text = Text()
    assert returns(plain).type == dict[str, int]
    assert returns(partial(plain)) is returns(plain)
    assert returns(text.shout).type == list[str]
    assert returns(text.shout) is returns(Text().shout)
    assert returns(len).type is Any
    assert returns(Adds()).type is int


def test_a_closure_that_was_called_is_not_kept_alive() -> None:
    def made(held: Text) -> Callable[[], Text]:
        def closure() -> Any:
            return held

        return closure

    held = Text()
    seen = weakref.ref(held)
    assert returns(made(held)).type is Any

    del held
    gc.collect()

    assert seen() is None
