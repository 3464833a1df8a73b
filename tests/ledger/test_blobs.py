"""Long values are kept as differences, and come back as they were."""

from __future__ import annotations

import random

import pytest

from quire.errors import LedgerError
from quire.ledger.blobs import Bases, blob_of, resolved


def test_every_value_comes_back_whatever_was_changed_of_it() -> None:
    chance = random.Random(7)
    bases, kept = Bases(), dict[str, str]()
    text = "".join(chance.choice('abc é|"{}[]@') for _ in range(70_000))
    short = 0
    for _ in range(300):
        place, much = chance.randrange(len(text)), chance.choice([0, 1, 7, 900, 30_000])
        text = text[:place] + "x|y" * chance.randrange(much + 1) + text[place + chance.randrange(much + 1) :]
        into: dict[str, str] = {}
        reference = bases.kept_apart(text, into)
        kept |= into
        assert set(into) == {blob_of(reference)}  # what it stands on is written with it
        assert resolved(reference, {blob_of(reference): kept[blob_of(reference)]}, "here") == text
        short += reference != blob_of(reference)
    assert short > 100 and len(kept) > 10

    with pytest.raises(LedgerError, match=r"has lost a value of here: there is no blob [0-9a-f]{64}$"):
        resolved(reference, {}, "here")


def test_a_mission_of_many_turns_takes_what_was_said() -> None:
    """A blueprint of 200 kB in the data of every turn, as in a mission of 128 turns."""
    bases, kept, references = Bases(), dict[str, str](), 0
    blueprint = "".join(f"turn {number}: go on. " for number in range(10_000))
    for number in range(128):
        references += len(bases.kept_apart(f'{{"part":{{"next":{number}}},"blueprint":"{blueprint}"}}', kept))
    assert references + sum(map(len, kept.values())) < 1.2 * len(blueprint)
