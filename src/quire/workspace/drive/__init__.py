"""Files and folders in Drive: made, copied, filled with bytes, moved, shared; and read."""

from quire.workspace.drive.copying import copy as copy
from quire.workspace.drive.making import file as file
from quire.workspace.drive.making import folder as folder
from quire.workspace.drive.making import pdf as pdf
from quire.workspace.drive.placing import move as move
from quire.workspace.drive.reading import export as export
from quire.workspace.drive.reading import text as text
from quire.workspace.drive.sharing import share as share

__all__ = ["copy", "export", "file", "folder", "move", "pdf", "share", "text"]
