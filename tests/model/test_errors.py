from __future__ import annotations

import pickle

import pytest

from quire import errors
from quire.errors import QuireError, did_you_mean

FAMILY = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


def test_the_nearest_known_word_is_offered() -> None:
    assert did_you_mean("reveiw", ["draft", "review", "post"]) == "; did you mean 'review'?"


def test_a_word_like_none_of_the_known_gets_the_list() -> None:
    assert did_you_mean("xyz", ["post", "draft", "post"]) == "; known: 'draft', 'post'"


def test_a_long_list_is_cut_short() -> None:
    known = [f"step_{letter}" for letter in "abcdefghij"]

    assert did_you_mean("!!!", known) == f"; known: {', '.join(map(repr, known[:8]))} and 2 more"


def test_an_empty_list_says_so() -> None:
    assert did_you_mean("post", []) == "; none is known"


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_every_error_says_what_to_do_and_can_be_sent_to_another_process(kind: type[QuireError]) -> None:
    error = kind("what was found")

    assert isinstance(error, QuireError)
    assert kind.__doc__
    assert str(pickle.loads(pickle.dumps(error))) == "what was found"
