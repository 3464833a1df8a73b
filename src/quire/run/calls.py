"""``run.call``: something repeatable, and its remembered answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from quire.errors import CodeChanged, NotNow
from quire.model.codec import Codec, codec
from quire.model.receipt import Kind, Receipt
from quire.run import waits
from quire.run.exits import contained, contained_in_thread
from quire.run.passes import Pass
from quire.workflows.effect import is_async, path_of
from quire.workflows.workflow import hints_of


def name_of(fn: Callable[..., Any]) -> str:
    inner = fn.func if isinstance(fn, partial) else fn
    return getattr(inner, "__name__", None) or type(inner).__name__


#: Found once for each function, for as long as the function is there: a closure and what it holds are not kept alive.
_codecs: WeakKeyDictionary[Callable[..., Any], Codec] = WeakKeyDictionary()


def returns(fn: Callable[..., Any]) -> Codec:
    """How the function's value is written and read: by its return annotation."""
    inner = fn.func if isinstance(fn, partial) else fn
    inner = getattr(inner, "__func__", inner)
    try:
        if (known := _codecs.get(inner)) is None:
            known = _codecs[inner] = _found(inner)
        return known
    except TypeError:  # a callable that cannot be a key
        return _found(inner)


def _found(fn: Callable[..., Any]) -> Codec:
    hint = hints_of(fn).get("return", Any)
    return codec(None.__class__ if hint is None else hint)


def check_code(receipt: Receipt, path: str) -> None:
    """Another function under the same key: the code changed under this record."""
    if receipt.fn and receipt.fn != path:
        raise CodeChanged(
            f"the code changed under {receipt.record_id!r}: step {receipt.step!r} asks for {path!r} where its receipt "
            f"is of {receipt.fn!r}; restore the old code, or rewind the record "
            f"(quire retry {receipt.record_id} --from STEP)"
        )


async def call(pass_: Pass, fn: Callable[..., Any], key: str, name: str, args: Any, kwargs: Any) -> Any:
    pass_.check()
    path = path_of(fn.func if isinstance(fn, partial) else fn)
    type_ = returns(fn)
    known = pass_.known.get(key)
    if known is not None:
        check_code(known, path)
        return type_.decode(known.value, f"the receipt of {name!r}")
    try:
        return await _called(pass_, fn, key, name, path, args, kwargs)
    except NotNow as error:
        await waits.not_now(pass_, key, name, error)


async def _called(pass_: Pass, fn: Callable[..., Any], key: str, name: str, path: str, args: Any, kwargs: Any) -> Any:
    type_ = returns(fn)
    with pass_.flight():
        value: Any
        if is_async(fn):
            value = await contained(fn(*args, **kwargs))
        else:
            loop = asyncio.get_running_loop()
            work = partial(contained_in_thread, fn, *args, **kwargs)
            value = await contained(loop.run_in_executor(pass_.host.threads, work))
            if inspect.isawaitable(value):
                value = await contained(value)
        text, copy = type_.taken(value, f"what {name!r} returned")
        pass_.answer(pass_.receipt(Kind.CALL, key, name, text, fn=path))
        return copy
