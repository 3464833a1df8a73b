"""A receipt: write-once proof of what was done or answered under a name; before the act it is an intent.

Keys are length-prefixed, so that no two (workflow, record, step, visit, scope, name) ever share one (protocol 17).
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum

from quire.model.row import Row, replace


class Kind(StrEnum):
    """What the receipt answers for."""

    ONCE = "once"
    CALL = "call"
    SLEEP = "sleep"
    WAIT = "wait"
    ASK = "ask"
    MAP = "map"
    EACH = "each"
    UNDO = "undo"


class Stage(StrEnum):
    """How far it is. INTENDED → DONE is the usual way; VOID: it surely did not happen; UNDONE: it was taken back.

    An intent that may not act yet is PARKED. People say whether it is RELEASED, so that it may be intended, or DROPPED.
    """

    PARKED = "parked"
    RELEASED = "released"
    DROPPED = "dropped"
    INTENDED = "intended"
    DONE = "done"
    VOID = "void"
    UNDONE = "undone"


#: Stages of an intent on which nobody has acted.
BEFORE = frozenset({Stage.PARKED, Stage.RELEASED, Stage.DROPPED})


class Receipt(Row, frozen=True):
    key: str
    record_id: str
    step: str
    visit: int
    name: str
    kind: Kind
    stage: Stage
    #: Qualified name of the function: another function under the same key means that the code changed.
    fn: str = ""
    #: Hash of the arguments: a receipt with another hash never answers.
    args_hash: str = ""
    #: JSON text of the arguments, for probe and undo; empty where neither needs them.
    args: str = ""
    #: JSON text of the value. Empty of an effect that was done: it could not be kept.
    value: str = ""
    #: Of the attempt that intended it: only this attempt, or a person, may complete it.
    nonce: str = ""
    worker: str = ""
    #: Nobody acts on the intent after this moment (protocol 1).
    act_by: float | None = None
    #: Order of intents within the ledger: undo goes down it.
    seq: int = 0
    at: float = 0.0
    done_at: float | None = None
    #: Qualified name of the effect whose undo takes it back; empty if there is none.
    undo: str = ""
    #: Hash and signature over what must not change, and which key of the keyring made it.
    signature: str = ""
    key_id: str = ""
    #: The idempotency key of the act: what the world outside knows it by. Empty: the intent is older than this field.
    act_key: str = ""
    #: JSON text of what was prepared for the act; and of who acts: the account, the client, the endpoint.
    prepared: str = ""
    actor: str = ""

    @property
    def known_as(self) -> str:
        """The idempotency key of the act. It is made once, with the intent, and never computed again."""
        return self.act_key or fingerprint(self.key)

    @property
    def open(self) -> bool:
        return self.stage is Stage.INTENDED

    @property
    def unfit(self) -> bool:
        """It happened, but what it returned could not be kept. A person gives the value."""
        return self.stage is Stage.DONE and self.kind is Kind.ONCE and self.value == ""

    def gives_value(self, known: Receipt) -> bool:
        """Return whether this is the receipt ``known``, with the value that it lacked."""
        done = self.stage is known.stage is Stage.DONE and self.kind is Kind.ONCE and self.nonce == known.nonce
        return done and known.value in ("", "null") and self.value != known.value


def key_of(*parts: str | int) -> str:
    """One key for these parts: each is prefixed with its length, so no joining of others gives the same."""
    return "".join(f"{len(text)}:{text}" for text in map(str, parts))


#: How a user's own key begins.
OWN = key_of("own")


def fingerprint(text: str) -> str:
    """Return a short hash of a text, for arguments and contents."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def act_key(ledger_id: str, key: str) -> str:
    """The idempotency key of a new act. Records of the same id in two ledgers do not share one."""
    return fingerprint(key_of(ledger_id, key))


def _sealed(receipt: Receipt) -> bytes:
    covered: tuple[str, ...] = (
        receipt.key,
        receipt.record_id,
        receipt.step,
        str(receipt.visit),
        receipt.name,
        receipt.kind,
        receipt.fn,
        receipt.args_hash,
        hashlib.sha256(receipt.value.encode()).hexdigest(),
        receipt.nonce,
        receipt.key_id,
    )
    if receipt.act_key:  # a receipt of before this field is signed without these
        covered += (receipt.act_key, receipt.prepared, receipt.actor)
    return key_of(*covered).encode()


class Keyring:
    """The keys with which receipts are signed, by id; the first signs, all verify. All workers of a ledger share it."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        if not keys:
            raise ValueError("a keyring holds at least one key")
        self.keys = keys
        self.current = next(iter(keys))

    def signed(self, receipt: Receipt) -> Receipt:
        receipt = replace(receipt, key_id=self.current)
        made = hmac.new(self.keys[self.current], _sealed(receipt), hashlib.sha256)
        return replace(receipt, signature=made.hexdigest())

    def verifies(self, receipt: Receipt) -> bool:
        key = self.keys.get(receipt.key_id)
        if key is None:
            return False
        made = hmac.new(key, _sealed(receipt), hashlib.sha256).hexdigest()
        return hmac.compare_digest(made, receipt.signature)
