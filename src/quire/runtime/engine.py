"""What a process sets up once per ledger: the keyring, and the definitions that others check against."""

from __future__ import annotations

import os
from typing import Any

from quire.errors import LedgerError, NotFound, did_you_mean
from quire.ledger.base import Ledger
from quire.machine.workflow import Registry
from quire.model.codec import dump, parse
from quire.model.receipt import Keyring
from quire.model.side import Setting

KEYRING = "keyring"
DEFINITION = "definition/"


async def shared_keyring(ledger: Ledger) -> Keyring:
    """The keyring that all workers of a ledger share; made by the first."""
    for _ in range(10):
        kept = await ledger.setting(KEYRING)
        if kept is not None:
            return Keyring({name: bytes.fromhex(key) for name, key in parse(kept.value).items()})
        await ledger.keep(Setting(KEYRING, dump({"k1": os.urandom(32).hex()}), 0))
    raise LedgerError("the ledger's keyring can be neither read nor made; is it being replaced all the time?")


async def register(ledger: Ledger, registry: Registry) -> None:
    """Write down what this process knows of its workflows, so that others need not import them."""
    for name, workflow in registry.workflows.items():
        text = dump(workflow.definition())
        for _ in range(10):
            kept = await ledger.setting(DEFINITION + name)
            if kept is not None and kept.value == text:
                break
            if await ledger.keep(Setting(DEFINITION + name, text, kept.version if kept is not None else 0)):
                break


async def definition(ledger: Ledger, name: str) -> dict[str, Any]:
    """The workflow of this name as it was registered last."""
    kept = await ledger.setting(DEFINITION + name)
    if kept is None:
        known = [setting.name.removeprefix(DEFINITION) for setting in await ledger.settings(DEFINITION)]
        raise NotFound(f"there is no workflow {name!r} in this ledger{did_you_mean(name, known)}")
    found: dict[str, Any] = parse(kept.value)
    return found


async def definitions(ledger: Ledger) -> list[dict[str, Any]]:
    return [parse(setting.value) for setting in await ledger.settings(DEFINITION)]
