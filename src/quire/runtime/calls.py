"""``run.call``: something repeatable, and its remembered answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from quire.errors import CodeChanged
from quire.machine.effect import path_of
from quire.machine.workflow import hints_of
from quire.model.codec import PLAIN, Codec, codec
from quire.model.receipt import Kind, Receipt
from quire.runtime.hold import Hold


def name_of(fn: Callable[..., Any]) -> str:
    inner = fn.func if isinstance(fn, partial) else fn
    return getattr(inner, "__name__", None) or type(inner).__name__


@lru_cache(maxsize=4096)
def _returns(fn: Callable[..., Any]) -> Codec:
    found = hints_of(fn).get("return", Any)
    return codec(None.__class__ if found is None else found)


def returns(fn: Callable[..., Any]) -> Codec:
    """How the function's value is written and read: by its return annotation."""
    inner = fn.func if isinstance(fn, partial) else fn
    try:
        return _returns(getattr(inner, "__func__", inner))
    except TypeError:  # an unhashable callable
        return PLAIN


def check_code(receipt: Receipt, path: str) -> None:
    """Another function under the same key: the code changed under this record."""
    if receipt.fn and receipt.fn != path:
        raise CodeChanged(
            f"the code changed under {receipt.record_id!r}: step {receipt.step!r} asks for {path!r} where its receipt "
            f"is of {receipt.fn!r}; restore the old code, or rewind the record "
            f"(quire retry {receipt.record_id} --from STEP)"
        )


async def call(hold: Hold, fn: Callable[..., Any], key: str, name: str, args: Any, kwargs: Any) -> Any:
    hold.check()
    path = path_of(fn.func if isinstance(fn, partial) else fn)
    type_ = returns(fn)
    known = hold.known.get(key)
    if known is not None:
        check_code(known, path)
        return type_.decode(known.value, f"the receipt of {name!r}")
    with hold.flight():
        value: Any
        inner = fn.func if isinstance(fn, partial) else fn
        if inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__):
            value = await fn(*args, **kwargs)
        else:
            loop = asyncio.get_running_loop()
            value = await loop.run_in_executor(hold.host.threads, partial(fn, *args, **kwargs))
            if inspect.isawaitable(value):
                value = await value
        text, copy = type_.taken(value, f"what {name!r} returned")
        hold.answer(hold.receipt(Kind.CALL, key, name, text, fn=path))
        return copy
