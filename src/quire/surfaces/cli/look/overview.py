"""``quire`` alone: how the ledger stands, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from quire.client.client import Client
from quire.explain import words
from quire.ledger.finding import concealed, sqlite_path
from quire.ledger.workers import alive
from quire.model.record import ENDED, Status
from quire.model.side import EVERYWHERE
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.config import ledger_there


@verb("overview", example="quire")
def overview(session: Session) -> int:
    """How the ledger stands, in five lines, and what to type next."""
    if not ledger_there(session.config.ledger):
        if session.json:
            session.out.emit({"ledger": session.config.ledger, "exists": False})
        else:
            session.out.say(f"There is no ledger at {sqlite_path(session.config.ledger)} yet.")
            begin = "quire up" if session.config.flows else "quire init"
            session.out.say(f"  next: {begin}          (quire demo shows it at work, quire --help lists all commands)")
        return Exit.OK

    async def work(client: Client) -> None:
        standing = await client.standing()
        counts = await client.counts()
        workers = await client.workers()
        totals: Counter[Status] = Counter()
        for count in counts:
            totals[count.status] += count.count
        live = [worker for worker in workers if alive(worker, standing.now)]
        if session.json:
            session.out.emit(
                {
                    "ledger": concealed(client.ledger.url),
                    "exists": True,
                    "records": {str(status): totals[status] for status in Status},
                    "workers": len(live),
                    **words.standing_json(standing),
                }
            )
            return
        out = session.out
        out.say(f"ledger   {concealed(client.ledger.url)}")
        flows = len({count.workflow for count in counts})
        out.say(f"records  {sum(totals.values())} of {flows} workflows: " + (_totals(totals) or "none yet"))
        stands = _stands(standing)
        out.say(f"workers  {len(live)} alive; the ledger is {stands}", colour=None if stands == "open" else "yellow")
        waiting = totals[Status.NEEDS_APPROVAL]
        out.say(f"people   {waiting} records wait for somebody, {totals[Status.ERROR]} stopped in ERROR")
        step = _moved(standing.sealed) if standing.sealed else _next(totals, live, stands)
        out.say(f"  next: {step}", bold=True)

    session.with_client(work)
    return Exit.OK


def _totals(totals: Counter[Status]) -> str:
    return ", ".join(f"{totals[status]} {status}" for status in Status if totals[status] > 0)


def _stands(standing: Any) -> str:
    if standing.sealed:
        return f"sealed (its records are at {concealed(standing.sealed)})"
    for word in ("halted", "paused"):
        held = [control for control in standing.controls if getattr(control, word)]
        if held:
            scopes = [control.scope for control in held]
            text = word if EVERYWHERE in scopes else f"{word} for {', '.join(scopes)}"
            by = next((control for control in held if control.scope == EVERYWHERE), held[0])
            text += f" by {by.by}" if by.by else ""
            return f"{text}: {by.reason}" if by.reason else text
    return "open"


def _moved(target: str) -> str:
    """How it goes on with a ledger whose records are elsewhere, or on their way."""
    if target.startswith("("):
        return "the same quire promote again, which goes on where it was"
    return f'set ledger = "{concealed(target)}" in quire.toml'


def _next(totals: Counter[Status], live: Sequence[Any], stands: str) -> str:
    if stands.startswith(("halted", "paused")):
        return "quire resume"
    if totals[Status.NEEDS_APPROVAL]:
        return "quire list --needs-me"
    if totals[Status.ERROR]:
        return "quire list --status ERROR"
    if not live and any(totals[status] > 0 for status in Status if status not in ENDED):
        return "quire up"
    return "quire watch" if live else "quire start WORKFLOW key=value"
