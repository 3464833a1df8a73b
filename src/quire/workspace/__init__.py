"""Acts on Google Workspace: folders and files, documents, mail and calendar, each done once.

They are ordinary effects: `await run.once(drive.folder, "Acme", parent=CLIENTS)`. Each says how it is prepared, how a
process that comes after a kill finds out whether it happened, and how it is undone. `connected` says which Google is
meant; without it the machine's own credentials are used, or the address in ``QUIRE_GOOGLE``.
"""

from quire.workflows.google_sources import Dropped as Dropped
from quire.workflows.google_sources import Form as Form
from quire.workflows.google_sources import Inbound as Inbound
from quire.workspace import calendar as calendar
from quire.workspace import chat as chat
from quire.workspace import docs as docs
from quire.workspace import drive as drive
from quire.workspace import forms as forms
from quire.workspace import gmail as gmail
from quire.workspace import pubsub as pubsub
from quire.workspace import sheets as sheets
from quire.workspace import slides as slides
from quire.workspace import tasks as tasks
from quire.workspace.connection import connected as connected
from quire.workspace.values import Answered as Answered
from quire.workspace.values import Clicked as Clicked
from quire.workspace.values import Draft as Draft
from quire.workspace.values import Event as Event
from quire.workspace.values import File as File
from quire.workspace.values import Filled as Filled
from quire.workspace.values import FormResponse as FormResponse
from quire.workspace.values import Mail as Mail
from quire.workspace.values import MailFile as MailFile
from quire.workspace.values import Posted as Posted
from quire.workspace.values import Published as Published
from quire.workspace.values import RowIn as RowIn
from quire.workspace.values import Sent as Sent
from quire.workspace.values import Shared as Shared
from quire.workspace.values import Task as Task
from quire.workspace.values import Written as Written

__all__ = [
    "Answered",
    "Clicked",
    "Draft",
    "Dropped",
    "Event",
    "File",
    "Filled",
    "Form",
    "FormResponse",
    "Inbound",
    "Mail",
    "MailFile",
    "Posted",
    "Published",
    "RowIn",
    "Sent",
    "Shared",
    "Task",
    "Written",
    "calendar",
    "chat",
    "connected",
    "docs",
    "drive",
    "forms",
    "gmail",
    "pubsub",
    "sheets",
    "slides",
    "tasks",
]
