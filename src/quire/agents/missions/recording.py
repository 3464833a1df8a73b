"""What a mission's receipts hold, as answers for running it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.agents.missions.tried import Keeper


class NotRecorded(QuireError):
    """The recording has no answer for this: what is asked now was not asked then."""

    worth_trying = False


class Recording:
    """Answers by name. ``live`` says which names are asked anew instead (what-if)."""

    def __init__(
        self,
        rows: dict[str, Any],
        people: dict[str, list[dict[str, Any]]] | None = None,
        *,
        live: Callable[[str], bool] | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.rows = rows
        #: What people answered, by question, in order.
        self.people = {question: list(answers) for question, answers in (people or {}).items()}
        #: Something may be asked anew, so models must be there.
        self.needs_models = live is not None
        self.live = live or (lambda name: False)
        #: Where the cost of what is asked anew is written down.
        self.keeper = keeper
        #: Names of answers that were given from the recording, and of those asked anew.
        self.used: list[str] = []
        self.asked: list[str] = []
        #: Names whose request is another than the one that was recorded.
        self.differing: list[str] = []

    def answer(self, name: str, digest: str = "") -> Any | None:
        """The recorded answer; None: ask anew."""
        if self.live(name):
            self.asked.append(name)
            return None
        row = self.rows.get(name)
        if row is None:
            raise NotRecorded(f"the recording has no answer for {name!r}")
        if digest and isinstance(row, dict) and row.get("asked") not in ("", None, digest):
            self.differing.append(name)
        self.used.append(name)
        return row

    def tools(self, agent_id: str) -> list[str]:
        """The tools that this agent called then."""
        names = [name for name in self.rows if name.startswith(f"{agent_id}/") and " tool " in name]
        return [name.partition(" tool ")[2].partition(" ")[0] for name in names]

    def times_asked(self, question: str) -> int:
        """How often people were asked this."""
        return len(self.people.get(question, ()))

    def person(self, question: str, nth: int = 0) -> dict[str, Any]:
        """What a person answered to this question, the nth time that it was asked."""
        answers = self.people.get(question)
        if not answers:
            raise NotRecorded(f"nobody was asked {question!r} then")
        return answers[min(nth, len(answers) - 1)]
