"""Checks of what users declare: a mistake is named in one sentence where it stands, not when a record comes to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quire.clock import seconds
from quire.errors import DefinitionError, InputError, did_you_mean
from quire.model.change import Rate


def is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: object, what: str) -> None:
    """Refuse what is no count."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DefinitionError(f"{what} is {value!r}; it must be a whole number, 1 or more")


def cap(value: object, whose: str) -> None:
    if value is not None:
        whole(value, f"the cap of {whose}")


def span(value: Any, what: str, *, least: float = 0.0) -> float:
    """Return the span in seconds."""
    try:
        length = seconds(value)
    except InputError as error:
        raise DefinitionError(f"{what}: {error}") from error
    if length < least:
        raise DefinitionError(f"{what} is {value!r}: nothing could be done in it")
    return length


def rate(value: object, whose: str) -> None:
    if value is not None and not isinstance(value, Rate):
        raise DefinitionError(f"the rate of {whose} is {value!r}; write it as rate(10, '1m', 'key')")


def word(value: object, known: Iterable[object], what: str) -> None:
    """Refuse what is none of these words."""
    words = list(known)
    if not any(value is one or (isinstance(one, str) and value == one) for one in words):
        raise DefinitionError(f"{what} is {value!r}; it must be {' or '.join(map(repr, words))}")


def options(given: Mapping[str, object], known: Iterable[str], what: str) -> None:
    """Refuse options that would be overlooked."""
    words = list(known)
    for name in given:
        if name not in words:
            raise DefinitionError(f"{what} takes no option {name!r}{did_you_mean(name, words)}")


def names(value: Any, what: str) -> tuple[str, ...]:
    """One name, or several in a list."""
    listed = isinstance(value, Iterable) and not isinstance(value, bytes | Mapping)
    found = (value,) if isinstance(value, str) else tuple(value) if listed else (None,)
    if not all(map(is_text, found)):
        raise DefinitionError(f"{what} is {value!r}; give a name as text, or a list of names")
    return found


def function(fn: Any, what: str, argument: str) -> None:
    """Refuse what cannot be called with one argument, or does nothing when it is called."""
    name = getattr(fn, "__name__", None)
    if not callable(fn) or inspect.isclass(fn) or not name:
        raise DefinitionError(f"a {what} must be a function of one argument, ({argument}), not {fn!r}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise DefinitionError(f"the {what} {name!r} yields, so that calling it does nothing; let it return")
    if not accepts(fn, 1):
        raise DefinitionError(f"the {what} {name!r} takes {_parameters(fn)}; it must take one argument, ({argument})")


def deps(value: Any, whose: str) -> None:
    """Refuse what is neither a type nor a function that makes dependencies: nobody would call it."""
    if value is None or inspect.isclass(value):
        return
    if not callable(value):
        raise DefinitionError(
            f"deps of {whose} is {value!r}; give the function that makes it, as in deps=make_deps (without calling it)"
        )
    if not accepts(value, 0):
        name = getattr(value, "__name__", repr(value))
        raise DefinitionError(f"the deps of {whose}, {name}, takes {_parameters(value)}; it must take no argument")


def accepts(fn: Callable[..., Any], count: int, words: Iterable[str] = ()) -> bool:
    """Return whether the function can be called with so many arguments by place and these by name."""
    try:
        inspect.signature(fn, follow_wrapped=False).bind(*[None] * count, **dict.fromkeys(words))
    except TypeError:
        return False
    except ValueError:  # of a function in C, which does not tell
        return True
    return True


def _parameters(fn: Callable[..., Any]) -> str:
    found = ", ".join(inspect.signature(fn, follow_wrapped=False).parameters)
    return f"({found})" if found else "nothing"
