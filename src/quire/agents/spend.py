"""What was spent, and how much may be: tokens, money, calls, time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from quire.errors import QuireError
from quire.workflows.retry import Fail


class Spend(BaseModel):
    """Tokens, money and calls. Money is in US dollars, as far as prices are known."""

    model_config = ConfigDict(extra="ignore")

    #: Calls that were begun, also those whose answer was lost.
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    #: Calls whose price is not known: ``usd`` is without them.
    unpriced: int = 0
    #: Calls whose process died before their answer was kept. Nobody knows what they cost: no other figure counts them.
    lost: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def plus(self, other: Spend) -> Spend:
        return Spend(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=round(self.usd + other.usd, 9),
            unpriced=self.unpriced + other.unpriced,
            lost=self.lost + other.lost,
        )

    def in_words(self) -> str:
        """Return it in words: ``3 calls (1 begun, cost not known), 1,204 tokens, $0.0031``."""
        price = f"${self.usd:.4f}" if self.usd or not self.unpriced else "price not known"
        more = f" and {self.unpriced} calls of unknown price" if self.unpriced and self.usd else ""
        plural = "" if self.calls == 1 else "s"
        lost = f" ({self.lost:,} begun, cost not known)" if self.lost else ""
        return f"{self.calls:,} call{plural}{lost}, {self.tokens:,} tokens, {price}{more}"


def of_row(row: Mapping[str, Any]) -> Spend:
    """Return what one answer of a model cost, as its receipt says it. A failed call costs what its provider said.

    Tries of the same call whose answer was lost before count as calls of unknown cost.
    """
    usage = row.get("usage") or {}
    usd = row.get("usd")
    lost = int(row.get("lost", 0))
    return Spend(
        calls=1 + lost,
        lost=lost,
        tokens_in=int(usage.get("in", 0)),
        tokens_out=int(usage.get("out", 0)),
        usd=float(usd or 0.0),
        unpriced=1 if usd is None and "reply" in row else 0,
    )


#: A call that was begun and whose answer was lost.
LOST = Spend(calls=1, lost=1)


class LimitReached(QuireError):
    """A limit is reached: nothing more is asked until a person raises it."""

    worth_trying = False

    def __init__(self, limit: str, text: str) -> None:
        super().__init__(text)
        self.limit = limit
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.limit, self.text)


class Meter:
    """Counts what a conversation spends and says when it has had enough.

    No call begins once what was spent has reached a limit; a call that is under way ends.
    """

    def __init__(self, allowance: Mapping[str, Any] | None = None) -> None:
        self.allowance = {word: value for word, value in (allowance or {}).items() if value is not None}
        self.spent = Spend()

    def add(self, row: Mapping[str, Any]) -> None:
        self.spent = self.spent.plus(of_row(row))

    @property
    def until(self) -> float | None:
        """The moment after which nothing is asked any more."""
        moment = self.allowance.get("until")
        return float(moment) if moment is not None else None

    def check(self) -> None:
        """Raise ``LimitReached`` if nothing more may be asked; ``Fail`` if a limit cannot be kept at all."""
        if self.spent.unpriced and ("usd" in self.allowance or "usd_per_day" in self.allowance):
            raise Fail(
                "the price of this model is not known, so a limit in dollars cannot be kept; "
                "give the model a price in the blueprint, or limit tokens"
            )
        for word, used in (("tokens", self.spent.tokens), ("usd", self.spent.usd), ("calls", self.spent.calls)):
            limit = self.allowance.get(word)
            if limit is not None and used >= limit:
                raise LimitReached(word, f"{amount(word, used)} are spent of {amount(word, limit)}")


def amount(word: str, much: float) -> str:
    """``1,000 tokens``, ``$0.5000``."""
    return f"${much:.4f}" if word == "usd" else f"{much:,.0f} {word}"
