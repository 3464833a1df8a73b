"""How often a step is tried, and how long it backs off: exponential, with full jitter, bounded."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from quire.clock import Span, seconds
from quire.errors import DefinitionError
from quire.workflows import declared


class Fail(Exception):
    """Raised by a step: there is no use in trying again."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Five tries in all, by default: after 1 s, 2 s, 4 s, … each waited for a random part of it, at most 5 minutes."""

    attempts: int = 5
    first: Span = field(default="1s", kw_only=True)
    factor: float = field(default=2.0, kw_only=True)
    most: Span = field(default="5m", kw_only=True)
    #: Which exceptions are worth another try; None: all but ``Fail``.
    on: Callable[[Exception], bool] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        declared.whole(self.attempts, "Retry(attempts=…)")
        if not declared.is_number(self.factor) or not self.factor >= 1:
            raise DefinitionError(f"Retry(factor={self.factor!r}) would shrink the back-off; the least is 1")
        declared.span(self.first, "Retry(first=…)")
        declared.span(self.most, "Retry(most=…)")
        test: object = self.on
        if test is not None and (not callable(test) or isinstance(test, type)):
            raise DefinitionError(
                f"Retry(on={self.on!r}) must be a function of the error, as on=lambda error: isinstance(error, OSError)"
            )

    def delay(self, attempt: int, error: BaseException, chance: Callable[[], float] = random.random) -> float | None:
        """Return how long to back off after try number ``attempt`` failed; None: that was the last."""
        if attempt >= self.attempts or not worth_trying(error):
            return None
        if self.on is not None and isinstance(error, Exception) and not self.on(error):
            return None
        asked = retry_after(error)
        if asked is not None:
            return asked
        return self._span(attempt) * chance()

    def _span(self, attempt: int) -> float:
        try:
            return min(seconds(self.most), seconds(self.first) * self.factor ** (attempt - 1))
        except OverflowError:  # after a thousand tries or so
            return seconds(self.most)


NEVER = Retry(1)


def check_retry(retry: object, whose: str) -> None:
    if not isinstance(retry, Retry):
        raise DefinitionError(f"the retry of {whose} is {retry!r}; write it as Retry(5)")


def worth_trying(error: BaseException) -> bool:
    """Some errors say by themselves that another try cannot help."""
    from quire.errors import ChildFailed, CodeChanged, InputError, QuireError

    if isinstance(error, Fail | CodeChanged | ChildFailed | DefinitionError | InputError):
        return False
    return not isinstance(error, QuireError) or getattr(error, "worth_trying", True)


def retry_after(error: BaseException) -> float | None:
    """What the other side asked for: a ``retry_after`` in seconds, or the Retry-After header of a response."""
    try:
        asked = getattr(error, "retry_after", None)
        if asked is None:
            response = getattr(error, "response", None)
            headers = getattr(response, "headers", None)
            asked = headers.get("retry-after") if headers is not None else None
        span = float(asked)  # type: ignore[arg-type]  # whatever the library left there
    except Exception:  # noqa: BLE001 - the library's own code may raise anything; then it asked for nothing
        return None
    if math.isnan(span):
        return None
    return min(max(span, 0.0), 86400.0)
