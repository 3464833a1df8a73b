"""Acts on Google Workspace: folders and files, documents, mail and calendar, each done once.

They are ordinary effects: `await run.once(drive.folder, "Acme", parent=CLIENTS)`. Each says how it is prepared, how a
process that comes after a kill finds out whether it happened, and how it is undone. `connected` says which Google is
meant; without it the machine's own credentials are used, or the address in ``QUIRE_GOOGLE``.
"""

from quire.workspace import calendar as calendar
from quire.workspace import docs as docs
from quire.workspace import drive as drive
from quire.workspace import gmail as gmail
from quire.workspace import sheets as sheets
from quire.workspace import slides as slides
from quire.workspace.connection import connected as connected
from quire.workspace.values import Draft as Draft
from quire.workspace.values import Event as Event
from quire.workspace.values import File as File
from quire.workspace.values import Filled as Filled
from quire.workspace.values import Mail as Mail
from quire.workspace.values import MailFile as MailFile
from quire.workspace.values import RowIn as RowIn
from quire.workspace.values import Sent as Sent
from quire.workspace.values import Shared as Shared
from quire.workspace.values import Written as Written

__all__ = [
    "Draft",
    "Event",
    "File",
    "Filled",
    "Mail",
    "MailFile",
    "RowIn",
    "Sent",
    "Shared",
    "Written",
    "calendar",
    "connected",
    "docs",
    "drive",
    "gmail",
    "sheets",
    "slides",
]
