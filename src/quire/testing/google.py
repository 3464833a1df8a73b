"""Google for one trial: an emulator of its own, and a transport that dies with the trial's worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from quire.errors import DefinitionError

if TYPE_CHECKING:
    from hectograph import Emulator

#: As whom the acts of a trial act.
ACCOUNT = "ann@example.org"

#: Does a write: it counts it, and may die before or after it.
Written = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


@asynccontextmanager
async def emulated(written: Written) -> AsyncIterator[Emulator]:
    """Let the acts of this block speak to an emulator of their own. Each of their writes goes through ``written``."""
    try:
        from hectograph import Emulator
    except ImportError as error:
        raise DefinitionError(
            "Trial(google=True) needs the emulator, hectograph; in a clone of Quire: pip install -e packages/hectograph"
        ) from error
    from quire.workspace import connected

    with Emulator(account=ACCOUNT) as emulator:
        async with connected(emulator.url, user=ACCOUNT) as google:
            call = google.transport.call

            async def counted(*args: Any, **given: Any) -> Any:
                async def done() -> Any:
                    return await call(*args, **given)

                return await (written(done) if given["write"] else done())

            google.transport.call = counted  # type: ignore[method-assign]
            yield emulator
