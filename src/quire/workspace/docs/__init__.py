"""Documents: filled from values, written at their end or in a named place, and read."""

from quire.workspace.docs.filling import fill as fill
from quire.workspace.docs.reading import read as read
from quire.workspace.docs.values import Image as Image
from quire.workspace.docs.values import Rows as Rows
from quire.workspace.docs.writing import append as append
from quire.workspace.docs.writing import replace as replace

__all__ = ["Image", "Rows", "append", "fill", "read", "replace"]
