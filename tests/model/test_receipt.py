from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.model.receipt import Keyring, Kind, Receipt, Stage, fingerprint, key_of
from quire.model.row import replace

parts = st.lists(st.text(max_size=6) | st.integers(-20, 20), max_size=5)


def a_receipt(**fields: Any) -> Receipt:
    given_: dict[str, Any] = {
        "key": "k",
        "record_id": "r",
        "step": "post",
        "visit": 2,
        "name": "put_online",
        "kind": Kind.ONCE,
        "stage": Stage.DONE,
        "fn": "shop:put_online",
        "args_hash": "abc",
        "args": "[1]",
        "value": '"https://example.org/1"',
        "nonce": "n1",
        "worker": "w1",
        "act_by": 10.0,
        "seq": 3,
        "at": 1.0,
        "done_at": 2.0,
        "undo": "shop:take_down",
        "signature": "",
        "key_id": "",
        "act_key": "k",
        "prepared": '"draft 7"',
        "actor": '{"account":"ann"}',
    }
    return Receipt(**given_ | fields)


def test_a_key_has_each_part_with_its_length() -> None:
    assert key_of("flow", "r", "post", 2, "", "put") == "4:flow1:r4:post1:20:3:put"


def test_parts_joined_otherwise_are_another_key() -> None:
    assert key_of("a|b", "c") != key_of("a", "b|c")
    assert key_of("1:a", "b") != key_of("1", "a1:b")


@given(parts, parts)
def test_no_two_lists_of_parts_share_a_key(one: list[str | int], other: list[str | int]) -> None:
    assert (key_of(*one) == key_of(*other)) is ([str(part) for part in one] == [str(part) for part in other])


@given(st.text(alphabet="0123456789:a", max_size=12), st.text(alphabet="0123456789:a", max_size=12))
def test_parts_that_look_like_lengths_do_not_confuse_a_key(one: str, other: str) -> None:
    assert key_of(one, other) not in (key_of(one + other), key_of(one, other, ""), key_of("", one, other))
    assert key_of(one) != key_of(other) or one == other


def test_a_fingerprint_is_short_and_of_the_text_alone() -> None:
    assert len(fingerprint("x" * 10_000)) == 32
    assert fingerprint("[1]") == fingerprint("[1]") != fingerprint("[1, 2]")


KEYRING = Keyring({"k2": b"second", "k1": b"first"})


def test_a_signed_receipt_verifies_and_names_its_key() -> None:
    signed = KEYRING.signed(a_receipt())

    assert signed.key_id == "k2"
    assert KEYRING.verifies(signed)
    assert replace(signed, signature="", key_id="") == a_receipt()


def test_a_receipt_signed_by_an_older_key_still_verifies() -> None:
    assert KEYRING.verifies(Keyring({"k1": b"first"}).signed(a_receipt()))


ALTERED: dict[str, Any] = {
    "key": "other",
    "record_id": "s",
    "step": "draft",
    "visit": 3,
    "name": "other",
    "kind": Kind.UNDO,
    "fn": "shop:other",
    "args_hash": "abd",
    "value": '"https://example.org/2"',
    "nonce": "n2",
    "key_id": "k1",
    "act_key": "l",
    "prepared": '"draft 8"',
    "actor": '{"account":"bob"}',
    "signature": "0" * 64,
}


@pytest.mark.parametrize("field", ALTERED)
def test_an_altered_receipt_does_not_verify(field: str) -> None:
    signed = KEYRING.signed(a_receipt())

    assert not KEYRING.verifies(replace(signed, **{field: ALTERED[field]}))


def test_a_receipt_that_was_signed_before_acts_had_keys_of_their_own_still_verifies() -> None:
    """As it is stored: the hash over eleven texts."""
    old = a_receipt(act_key="", prepared="", actor="", key_id="k1")
    value = hashlib.sha256(old.value.encode()).hexdigest()
    names = ("key", "record_id", "step", "visit", "name", "kind", "fn", "args_hash")
    covered = key_of(*(getattr(old, name) for name in names), value, old.nonce, old.key_id)
    signed = replace(old, signature=hmac.new(b"first", covered.encode(), hashlib.sha256).hexdigest())

    assert KEYRING.verifies(signed)
    assert not KEYRING.verifies(replace(signed, act_key="k"))


def test_a_receipt_of_an_unknown_key_does_not_verify() -> None:
    forged = Keyring({"k3": b"third"}).signed(a_receipt())

    assert not KEYRING.verifies(forged)
    assert not KEYRING.verifies(replace(forged, key_id="k2"))


def test_a_receipt_without_a_signature_does_not_verify() -> None:
    assert not KEYRING.verifies(a_receipt())
    assert not KEYRING.verifies(a_receipt(key_id="k2"))


def test_what_moves_between_fields_does_not_verify() -> None:
    signed = KEYRING.signed(a_receipt(step="ab", name="c"))

    assert not KEYRING.verifies(replace(signed, step="a", name="bc"))


def test_an_empty_keyring_is_refused() -> None:
    with pytest.raises(ValueError, match="a keyring holds at least one key"):
        Keyring({})


def test_an_intent_is_open_and_a_receipt_is_not() -> None:
    assert a_receipt(stage=Stage.INTENDED).open
    assert not a_receipt().open
