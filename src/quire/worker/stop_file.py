"""A file named STOP in the folder halts: at the top of the folder all of it, in a workflow's directory that workflow.

It needs no account, no program and no password: whoever can put a file there can stop the work. While the file is there
the halt is kept up: whoever resumes takes it away first. Taking it away resumes nothing; that is for a person to say.
"""

from __future__ import annotations

import logging

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError
from quire.folder.base import Folder, FolderError
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.model.change import Order
from quire.model.side import EVERYWHERE

log = logging.getLogger("quire.stopfile")

REASON = "file STOP in the folder"


async def found(ledger: Ledger, folder: Folder) -> dict[str, str]:
    """The paths of the files that are there, by the scope that each halts."""
    names = [str(definition["name"]) for definition in await engine.definitions(ledger)]
    there = await folder.stops(names)
    return {workflow or EVERYWHERE: path for workflow, path in there.items()}


async def look(ledger: Ledger, folder: Folder) -> list[str]:
    """Halt what the files say, unless it is halted; answers the scopes that were halted now."""
    there = await found(ledger, folder)
    if not there:
        return []
    halted = {control.scope for control in (await ledger.standing()).controls if control.halted}
    new = [scope for scope in there if scope not in halted and EVERYWHERE not in halted]
    for scope in new:
        await ledger.order(Order("halt", scope, f"the folder ({there[scope]})", REASON))
        what = "everything" if scope == EVERYWHERE else repr(scope)
        log.warning("halted %s: %s (%s); take it away, then quire resume", what, REASON, there[scope])
    return new


async def watch(ledger: Ledger, folder: Folder, clock: Clock = SYSTEM) -> None:
    """Look again and again, until cancelled. A folder that cannot be read stops nothing, and is reported once."""
    reported = ""
    while True:
        try:
            await look(ledger, folder)
            reported = ""
        except (FolderError, LedgerError) as error:
            if str(error) != reported:
                log.warning("nobody sees whether there is a file STOP: %s", error)
            reported = str(error)
        await clock.sleep(folder.look_seconds)
