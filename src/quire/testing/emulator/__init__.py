"""Google Sheets and Drive on loopback, true to the recordings of both, with faults that can be switched on.

``Emulator`` is the object, ``python -m quire.testing.emulator`` the command. What goes wrong on purpose is described in
``faults``, what a person does in ``person``, what is unverified about Google in ``switch``.
"""

from quire.testing.emulator.emulator import Emulator

__all__ = ["Emulator"]
