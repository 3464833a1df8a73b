"""What a process sets up once per ledger: its id, the keyring, and the definitions that others check against."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from quire.clock import new_id
from quire.errors import LedgerError, NotFound, did_you_mean
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.receipt import Keyring
from quire.model.side import Setting
from quire.workflows.workflow import Registry

KEYRING = "keyring"
#: The environment variable that names the file with the keys; the ledger does not hold them then.
KEYRING_FILE = "QUIRE_KEYRING"
#: The name in the ledger's keyring that says so. It is no key.
IN_FILE = "in_file"
KEY_BYTES = 32
DEFINITION = "definition/"
#: The setting with the id of the ledger. It is carried along when the ledger is promoted.
LEDGER_ID = "ledger_id"


def new_ledger_id(before: Setting | None) -> Setting:
    """The setting that gives a ledger an id of its own."""
    return Setting(LEDGER_ID, dump(new_id()), before.version if before is not None else 0)


async def ledger_id(ledger: Ledger) -> str:
    """Return the id of this ledger, which the first worker makes. It enters the idempotency keys of acts."""
    while (kept := await ledger.setting(LEDGER_ID)) is None:
        await ledger.keep(new_ledger_id(None))
    return str(parse(kept.value))


async def shared_keyring(ledger: Ledger, environ: Mapping[str, str] = os.environ) -> Keyring:
    """The keyring that all workers of a ledger share: the file's that the environment names, or made by the first.

    Whoever may read the ledger's store can read a key that it holds; a key of the file never comes into it. A key that
    the ledger had before goes on verifying the receipts of that time, and signs nothing any more.
    """
    path = environ.get(KEYRING_FILE, "")
    given = _keys_in(path) if path else {}
    for _ in range(10):
        kept = await ledger.setting(KEYRING)
        held: dict[str, str] = parse(kept.value) if kept is not None else {}
        keys = _all_keys(given, held, path)
        if path:
            wanted = held | {IN_FILE: ""}
        else:
            wanted = held or {"k1": os.urandom(32).hex()}
        if held == wanted:
            return Keyring(keys)
        await ledger.keep(Setting(KEYRING, dump(wanted), kept.version if kept is not None else 0))
    raise LedgerError("the ledger's keyring can be neither read nor made; is it being replaced all the time?")


def _all_keys(given: Mapping[str, bytes], held: Mapping[str, str], path: str) -> dict[str, bytes]:
    """Return the keys of the file, which sign, before those that the ledger holds."""
    if IN_FILE in held and not given:
        raise LedgerError(
            f"the keys of this ledger are in a file: name it in the environment variable {KEYRING_FILE}, here as for "
            "all other processes of this ledger"
        )
    own = {name: bytes.fromhex(key) for name, key in held.items() if name != IN_FILE}
    if other := [name for name in own if name in given and given[name] != own[name]]:
        raise LedgerError(
            f"the key {other[0]!r} in {path!r} is not the key of that name in the ledger, which receipts are signed "
            "with; give it another name"
        )
    return {**given, **own}


def _keys_in(path: str) -> dict[str, bytes]:
    """Return the keys in a JSON file: a name for each, and at least 64 hexadecimal digits. The first one signs."""
    try:
        with open(path, encoding="utf-8") as file:
            found = {str(name): bytes.fromhex(key) for name, key in json.load(file).items()}
    except OSError as error:
        raise LedgerError(f"the file with the keys, {path!r} ({KEYRING_FILE}), cannot be read: {error}") from error
    except (ValueError, TypeError, AttributeError):
        found = {}
    if not found or IN_FILE in found or min(map(len, found.values())) < KEY_BYTES:
        raise LedgerError(
            f"the file {path!r} ({KEYRING_FILE}) must hold a JSON object of keys, each of at least {2 * KEY_BYTES} "
            'hexadecimal digits, like {"f1": "0123…"}'
        )
    return found


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
