"""The picture that ``quire watch`` draws: in place on a terminal, line by line elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from quire.clock import iso
from quire.explain import words
from quire.ledger.workers import alive
from quire.model.change import Count, Standing
from quire.model.event import Event
from quire.model.record import Status
from quire.model.row import as_dict
from quire.model.side import Worker
from quire.surfaces.cli.command import Session
from quire.surfaces.cli.output import COLOURS, on_one_line

_NEWEST = 12


class Watching:
    def __init__(self, session: Session, workflow: str) -> None:
        self.session = session
        self.workflow = workflow
        self.newest: deque[Event] = deque(maxlen=_NEWEST)
        self._live: Any = None
        self._last = ""

    def __enter__(self) -> Watching:
        if self.session.out.terminal:
            from rich.live import Live

            self._live = Live(console=self.session.out.console, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(
        self, counts: Sequence[Count], standing: Standing, workers: Sequence[Worker], new: Sequence[Event]
    ) -> None:
        chosen = [count for count in counts if not self.workflow or count.workflow == self.workflow]
        live = sum(alive(worker, standing.now) for worker in workers)
        self.newest.extend(new)
        if self.session.json:
            rows = [as_dict(count) | {"status": str(count.status)} for count in chosen]
            self._changed(
                str(rows), lambda: self.session.out.emit({"at": iso(standing.now), "workers": live, "counts": rows})
            )
        elif self._live is not None:
            self._live.update(self._picture(chosen, standing, live), refresh=True)
        else:
            text = ", ".join(f"{c.count} {c.status} at {c.step or 'the end'}" for c in chosen) or "no records"
            self._changed(text, lambda: self.session.out.say(f"{iso(standing.now)[11:19]}  {live} workers  {text}"))

    def _changed(self, text: str, tell: Any) -> None:
        if text != self._last:
            self._last = text
            tell()

    def _picture(self, counts: Sequence[Count], standing: Standing, live: int) -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=box.SIMPLE_HEAD, title=f"{iso(standing.now)[:19]}Z · {live} workers alive", title_justify="left"
        )
        shown = [status for status in Status if any(count.status is status for count in counts)]
        for name in ("workflow", "step", *shown):
            table.add_column(str(name), style=COLOURS.get(str(name), ""), justify="right" if name in shown else "left")
        cells: dict[tuple[str, str], dict[Status, int]] = {}
        for count in counts:
            cells.setdefault((count.workflow, count.step), {})[count.status] = count.count
        for (workflow, step), row in cells.items():
            table.add_row(Text(workflow), Text(step or "(ended)"), *(str(row.get(status, "")) for status in shown))
        lines = [Text(_line(event)) for event in self.newest]
        return Group(table, *lines)


def _line(event: Event) -> str:
    return f"{iso(event.at)[11:19]}  {on_one_line(event.record_id, 30):<30}  {on_one_line(words.line(event), 90)}"
