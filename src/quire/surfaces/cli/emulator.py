"""``quire emulate``: Google Workspace on this machine. The emulator is a distribution of its own, named hectograph."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import click

from quire.errors import InputError


@click.command("emulate", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def emulate(words: Sequence[str]) -> int:
    """Run an emulator of the Google APIs. Its own help: quire emulate --help."""
    if find_spec("hectograph") is None:
        raise InputError("the emulator is not installed here; from a clone: pip install packages/hectograph")
    return subprocess.call([sys.executable, "-m", "hectograph", *words])
