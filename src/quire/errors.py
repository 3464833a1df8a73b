"""Every error that Quire raises on purpose, in families by what the caller can do about it.

A message names the thing, what was found, what was expected, and, where there is one, the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class QuireError(Exception):
    """Base of every error raised on purpose by this package."""


class DefinitionError(QuireError):
    """The workflow as declared cannot run. Fix the declaration; retrying cannot help."""


class InputError(QuireError):
    """What was given cannot be accepted. Nothing was changed; mend the input and try again."""


class ValueRefused(InputError):
    """A value cannot be kept in a ledger: it is no JSON, or it does not survive the round trip."""


class NotFound(InputError):
    """There is no such record, workflow or step."""


class IllegalMove(InputError):
    """The record may not make this move from where it stands."""


class AlreadyExists(InputError):
    """A record with this id exists and was started with something else."""


class StaleVersion(InputError):
    """The record has changed since it was read. Read it again, then decide again."""


class Halted(InputError):
    """The ledger, or this workflow in it, is halted: nothing starts until somebody resumes it."""


class LedgerError(QuireError):
    """The ledger cannot be used as it is. The message says why and what mends it."""


class LedgerUnavailable(LedgerError):
    """The store did not answer. Whether the write landed is unknown; the same change may be sent again."""


class Moved(LedgerError):
    """This ledger was sealed: its records live elsewhere now, or are on their way there."""


class WorkerClosed(QuireError):
    """This worker's lease ran out and another took its records. Start again under a new worker id."""


class LeaseLost(QuireError):
    """Another worker holds this record now. Drop the result; do not write it."""


class CodeChanged(QuireError):
    """The code changed under a record: what the step asks for is not what its receipts answer."""


class EffectChanged(CodeChanged):
    """A receipt answers for this effect, but it was made with other arguments. Never a silent skip."""


class EffectRepeated(DefinitionError):
    """The same effect name stands twice in one pass of a step. Give each its own with ``.named(...)``."""


class ChildFailed(QuireError):
    """A child record ended without a result."""


class ResultMissing(QuireError):
    """The record ended without the result that was asked for, or has not ended in time."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A closing clause for a message: the nearest known word, or the known words."""
    words = sorted(set(known))
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not words:
        return "; none is known"
    shown = ", ".join(repr(w) for w in words[:8])
    return f"; known: {shown}" + (f" and {len(words) - 8} more" if len(words) > 8 else "")
