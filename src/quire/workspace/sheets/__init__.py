"""Spreadsheets beside the ledger: filled from values, given rows, and read."""

from quire.workspace.sheets.filling import fill as fill
from quire.workspace.sheets.reading import values as values
from quire.workspace.sheets.rows import row as row

__all__ = ["fill", "row", "values"]
