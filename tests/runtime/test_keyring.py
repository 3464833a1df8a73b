"""Where the keys of a ledger come from: a file that the environment names, or the ledger itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.errors import LedgerError
from quire.ledger.engine import IN_FILE, KEYRING, KEYRING_FILE, shared_keyring
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.codec import parse
from quire.run.waits import signature
from quire.testing import ToldClock
from tests.model.test_receipt import a_receipt

ONE, TWO = "1f" * 32, "2e" * 32


def named(tmp_path: Path, **keys: str) -> dict[str, str]:
    """An environment that names a file with these keys."""
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(keys), encoding="utf-8")
    return {KEYRING_FILE: str(path)}


async def held(ledger: MemoryLedger) -> dict[str, str]:
    kept = await ledger.setting(KEYRING)
    found: dict[str, str] = parse(kept.value) if kept is not None else {}
    return found


async def test_a_key_of_a_file_never_comes_into_the_ledger(tmp_path: Path) -> None:
    ledger = MemoryLedger(ToldClock())

    keyring = await shared_keyring(ledger, named(tmp_path, f1=ONE))

    assert keyring.keys == {"f1": bytes.fromhex(ONE)}
    assert await held(ledger) == {IN_FILE: ""}


async def test_a_process_that_does_not_name_the_file_stops(tmp_path: Path) -> None:
    """It would sign with a key of its own, which the others do not know."""
    ledger = MemoryLedger(ToldClock())
    await shared_keyring(ledger, named(tmp_path, f1=ONE))

    with pytest.raises(LedgerError, match=f"name it in the environment variable {KEYRING_FILE}"):
        await shared_keyring(ledger, {})


async def test_a_key_that_the_ledger_had_verifies_its_receipts_and_signs_nothing_any_more(tmp_path: Path) -> None:
    ledger = MemoryLedger(ToldClock())
    before = await shared_keyring(ledger, {})
    receipt = before.signed(a_receipt())

    after = await shared_keyring(ledger, named(tmp_path, f1=ONE))

    assert after.verifies(receipt)
    assert after.signed(a_receipt()).key_id == "f1"
    assert signature(after, "server", "link") != signature(before, "server", "link")
    with pytest.raises(LedgerError, match=KEYRING_FILE):
        await shared_keyring(ledger, {})


async def test_the_first_key_of_a_file_signs_and_all_verify(tmp_path: Path) -> None:
    ledger = MemoryLedger(ToldClock())
    receipt = (await shared_keyring(ledger, named(tmp_path, f1=ONE))).signed(a_receipt())

    keyring = await shared_keyring(ledger, named(tmp_path, f2=TWO, f1=ONE))

    assert keyring.current == "f2"
    assert keyring.verifies(receipt)


async def test_another_key_under_a_name_that_the_ledger_uses_is_refused(tmp_path: Path) -> None:
    ledger = MemoryLedger(ToldClock())
    await shared_keyring(ledger, {})

    with pytest.raises(LedgerError, match=r"'k1' .* give it another name"):
        await shared_keyring(ledger, named(tmp_path, k1=ONE))

    assert IN_FILE not in await held(ledger)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"f1": 3}', '{"f1": "no hex"}', '{"f1": "1f1f"}', '{"in_file": ""}'])
async def test_a_file_without_keys_is_named_and_nothing_is_made(tmp_path: Path, text: str) -> None:
    ledger, path = MemoryLedger(ToldClock()), tmp_path / "keys.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(LedgerError, match=r"keys.json.*at least 64 hexadecimal digits"):
        await shared_keyring(ledger, {KEYRING_FILE: str(path)})
    with pytest.raises(LedgerError, match=r"gone.json.*cannot be read"):
        await shared_keyring(ledger, {KEYRING_FILE: str(tmp_path / "gone.json")})

    assert await held(ledger) == {}
