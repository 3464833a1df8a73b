"""The panel: the sheet in which people see the records of any ledger, and command from it."""

from quire.surfaces.panel.panel import Panel as Panel
from quire.surfaces.panel.result import result_tab as result_tab
