"""Every error that Quire raises on purpose, in families by what the caller can do about it.

A message names the thing, what was found, what was expected, and, where there is one, the remedy. The first sentence of
a class says when it is raised, the rest what to do then: ``docs/errors.md`` is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class QuireError(Exception):
    """Base of every error raised on purpose by this package."""


class DefinitionError(QuireError):
    """The workflow as declared cannot run. Fix the declaration; retrying cannot help."""


class InputError(QuireError):
    """What was given cannot be accepted. Nothing was changed; correct the input and try again."""


class ValueRefused(InputError):
    """A value cannot be kept in a ledger: it is no JSON, or it does not survive the round trip. Annotate its type, or
    convert it first.
    """


class NotFound(InputError):
    """There is no such record, workflow or step. The message names the nearest that there is; is it the right ledger?
    ``quire config`` says which one it is.
    """


class IllegalMove(InputError):
    """The record may not make this move from where it stands. Look at it (``quire why ID``), then choose a move that it
    offers.
    """


class AlreadyExists(InputError):
    """A record with this id exists and was started with something else. Give the new one another id, or edit the one
    that is there.
    """


class StaleVersion(InputError):
    """The record has changed since it was read. Read it again, then decide again."""


class Halted(InputError):
    """The ledger, or this workflow in it, is halted: nothing starts until somebody resumes it. Find out why it was
    halted, then ``quire resume``, with ``--cancelled`` for what the halt cancelled.
    """


class LedgerError(QuireError):
    """The ledger cannot be used as it is. The message says why and what puts it right."""


class LedgerUnavailable(LedgerError):
    """The store did not answer. Whether the write landed is unknown; the same change may be sent again."""


class Crowded(LedgerUnavailable):
    """As many workers as the ledger takes write to it already. This one waits for its turn; end another, or use a
    store that takes more.
    """


class Full(LedgerUnavailable):
    """The server takes no more connections. End what holds them, raise its limit, put a pooler before it, or give each
    process fewer (``?connections=``).
    """


class Moved(LedgerError):
    """This ledger was sealed: its records live elsewhere now, or are on their way there. Use the address that the
    message names.
    """


class WorkerClosed(QuireError):
    """This worker's lease ran out and another took its records. Start again under a new worker id."""


class LeaseLost(QuireError):
    """Another worker holds this record now. Drop the result; do not write it."""


class CodeChanged(QuireError):
    """The code changed under a record: what the step asks for is not what its receipts answer. Restore the code, or do
    the step anew with ``quire retry ID --from STEP``.
    """


class EffectChanged(CodeChanged):
    """A receipt answers for this effect, but it was made with other arguments. Decide what is right; ``quire retry ID
    --from STEP`` does it anew. It is never skipped in silence.
    """


class ReceiptForged(CodeChanged):
    """A receipt does not carry this ledger's signature: somebody altered or made it. See ``quire verify``; ``quire
    retry ID --from STEP`` does the effect anew. It is never believed, and nothing is done over it.
    """


class EffectRepeated(DefinitionError):
    """The same effect name stands twice in one pass of a step. Give each its own with ``.named(...)``."""


class NotNow(QuireError):
    """It cannot be done for now, and was not. The record waits, no try is counted; ``quire why`` says what helps.

    A person must change something first, or time must pass. ``again``: after how many seconds it is tried again, and
    after how many more, and so on; the last one holds from then on.
    """

    again: Sequence[float] = (300.0,)
    #: The command that helps, if there is one.
    remedy: str = ""

    def due(self, now: float, times: int) -> float:
        """Return when to try again, after so many times."""
        return now + self.again[min(times, len(self.again) - 1)]


class ChildFailed(QuireError):
    """A child record ended without a result. Correct and retry the child, or the parent; or let the parent
    tolerate failures (``run.map(..., failures="keep")``).
    """


class ResultMissing(QuireError):
    """The record ended without the result that was asked for, or has not ended in time. The message says how it stands;
    wait longer, or look at it with ``quire show ID``. If a step failed, ``StepFailed`` is the cause.
    """


class StepFailed(QuireError):
    """The cause of a ``ResultMissing``: what the step raised, perhaps in another process, and the lines of its code.
    Correct what the lines show, then ``quire retry ID``.

    ``trace``: these lines, as a traceback shows them. They stand in a traceback of this error, too.
    """

    def __init__(self, text: str, trace: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.trace = list(trace)
        if trace:
            self.add_note("\n".join(["The step raised it here:", *trace]))


def message_of(error: BaseException) -> str:
    """Return what an error says. Errors come from anybody's code, so saying it may fail, too."""
    try:
        return str(error)
    except Exception as odd:  # noqa: BLE001 - its own __str__ may raise anything
        return f"(it cannot say what: its __str__ raised {type(odd).__name__})"


def in_words(error: BaseException) -> str:
    """Return an error's type and what it says."""
    kind, text = type(error).__name__, message_of(error)
    return f"{kind}: {text}" if text else kind


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a closing clause for a message: the nearest known word, or the known words."""
    import difflib

    words = sorted(set(known))
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not words:
        return "; none is known"
    shown = ", ".join(repr(w) for w in words[:8])
    return f"; known: {shown}" + (f" and {len(words) - 8} more" if len(words) > 8 else "")
