"""An emulator of Google Workspace on loopback, with faults that can be switched on.

``Emulator`` is the object, ``hectograph`` the command, ``workspace`` the pytest fixture. ``core.faults`` describes what
goes wrong on purpose, ``person`` what a person does, ``core.switch`` what nobody has verified about Google.
"""

from hectograph.emulator import Emulator

__all__ = ["Emulator"]
