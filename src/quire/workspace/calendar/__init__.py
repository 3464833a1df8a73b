"""Events: made, changed and cancelled once each; and who is busy when."""

from quire.workspace.calendar.changing import cancel as cancel
from quire.workspace.calendar.changing import update as update
from quire.workspace.calendar.making import event as event
from quire.workspace.calendar.reading import busy as busy

__all__ = ["busy", "cancel", "event", "update"]
