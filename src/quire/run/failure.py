"""What is kept of an error: one text for the record, and the trace that the log keeps with the try that failed.

The trace is made for the person who wrote the step. It shows the frames of that person's code, with file, line,
function and source line. Frames of the engine, of Python's library and of other packages are folded into a count.
Secrets are struck out, and the trace is bounded in size.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from quire.errors import QuireError, in_words, message_of
from quire.folder.secret import redacted, secrets_of
from quire.model.codec import dump, readable

#: The longest text of a record's error, and of one error in a trace.
MOST_OF_AN_ERROR = 4000
MOST_OF_A_LINK = 1000
#: So many errors of a chain are kept, and so many frames of each: those where it began, and those where it ended.
MOST_LINKS = 6
FIRST_FRAMES, LAST_FRAMES = 6, 12
#: The longest line of source, and the longest error in a line of the worker's output.
MOST_OF_A_LINE = 300
#: A trace that takes more characters loses frames until it fits.
MOST_OF_A_TRACE = 12_000
#: Of a longer message nobody looks for secrets beyond this, because nothing beyond this is ever shown.
_LOOKED_AT = 20_000

#: One error of a chain as the log keeps it: ``type``, ``message``, ``frames``, and ``as``: how it belongs to the one
#: before it (``cause``, ``context`` or ``member`` of a group). A frame has ``file``, ``line``, ``function`` and
#: ``code``, and ``library`` if it is not the user's own; or it is ``{"folded": 3}``.
Link = dict[str, Any]


class Failure(NamedTuple):
    """An error as it is kept."""

    #: One text: type, message, and the place in the user's code.
    error: str
    trace: tuple[Link, ...] = ()


def failure_of(error: BaseException) -> Failure:
    """Return what is kept of this error."""
    chain = list(_chain(error))
    place = next((found for link, _ in chain if (found := _own_place(link)) is not None), None)
    text = _words(error)
    status = next((code for link, _ in chain if (code := http_status(link)) is not None), None)
    if status is not None and str(status) not in text:
        text += f", HTTP {status}"
    if place is not None and not isinstance(error, QuireError):
        text += f" (in {place.name}, {_short(place.filename)}:{place.lineno})"
    return Failure(cut(text, MOST_OF_AN_ERROR), _bounded([_link(*link) for link in chain]))


def described(error: BaseException) -> str:
    """Return an error's type, its words, and where in the user's code it came from."""
    return failure_of(error).error


def http_status(error: BaseException) -> int | None:
    """Return the status of the HTTP answer that an error is about, as the common libraries keep it."""
    response = getattr(error, "response", None)
    found = [getattr(response, "status_code", None), getattr(response, "status", None)]
    found += [getattr(error, "status_code", None), getattr(error, "status", None)]
    found += [getattr(error, "code", None)] if "http" in type(error).__name__.casefold() else []
    return next((each for each in found if isinstance(each, int) and 100 <= each < 600), None)


def own_line(trace: Sequence[Link]) -> str:
    """Return the innermost line of the user's own code, for the worker's output. Empty: none is known."""
    for link in trace:
        for frame in reversed(link["frames"]):
            if "file" in frame and not frame.get("library"):
                where = f"{frame['file']}:{frame['line']} in {frame['function']}"
                return f"{where}: {frame['code']}" if frame["code"] else where
    return ""


def cut(text: str, most: int) -> str:
    """Return the text as it may be kept: without secrets, and with a mark where it was too long."""
    kept = redacted(readable(text[:_LOOKED_AT]), secrets_of(os.environ))
    if len(kept) <= most and len(text) <= _LOOKED_AT:
        return kept
    mark = f"… (cut here; it has {len(text):,} characters)"
    return kept[: most - len(mark)] + mark


def _words(error: BaseException) -> str:
    text = in_words(error)
    if isinstance(error, QuireError):
        text = message_of(error) or text
    elif isinstance(error, asyncio.CancelledError):
        text += "; something that the step awaited was cancelled, though nobody asked the step to end"
    return text


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the error, what it holds if it is a group, and what caused it, each once."""
    todo: list[tuple[BaseException, str]] = [(error, "")]
    seen: set[int] = set()
    while todo and len(seen) < MOST_LINKS:
        one, how = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one, how
        if isinstance(one, BaseExceptionGroup):
            todo += [(member, "member") for member in one.exceptions]
        if one.__cause__ is not None:
            todo.append((one.__cause__, "cause"))
        elif one.__context__ is not None and not one.__suppress_context__:
            todo.append((one.__context__, "context"))


def _link(error: BaseException, how: str) -> Link:
    kind = type(error)
    home = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    link: Link = {
        "type": home + kind.__qualname__,
        "message": cut("\n".join([message_of(error), *notes]), MOST_OF_A_LINK),
    }
    return link | {"frames": _frames(error)} | ({"as": how} if how else {})


# -- frames ----------------------------------------------------------------------------------------------------


def _stack(error: BaseException) -> traceback.StackSummary:
    """Return the frames of an error, outermost first. Their source lines are read only when they are asked for."""
    return traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), limit=-200, lookup_lines=False)


def _own(stack: Sequence[traceback.FrameSummary]) -> list[bool]:
    """Say of each frame whether it is the user's own.

    Installed packages are other people's code. Exception: the package that the outermost of these frames is in, for a
    workflow may be installed, too.
    """
    homes = [_home(frame.filename) for frame in stack]
    first = next((home for home in homes if home is not None), "")
    first = "" if first in _OF_THE_ENGINE else first
    return [home is not None and home in ("", first) for home in homes]


def _own_place(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of the user's code."""
    stack = _stack(error)
    return next((frame for frame, own in zip(reversed(stack), reversed(_own(stack)), strict=True) if own), None)


def _frames(error: BaseException) -> list[dict[str, Any]]:
    stack = _stack(error)
    own = _own(stack)
    # An error within the engine or a library says at least where it was raised.
    kept = [place for place, mine in enumerate(own) if mine] or [*range(len(stack))][-1:]
    kept = kept if len(kept) <= FIRST_FRAMES + LAST_FRAMES else kept[:FIRST_FRAMES] + kept[-LAST_FRAMES:]
    shown: list[dict[str, Any]] = []
    following = 0
    for place in kept:
        shown += [{"folded": place - following}] if place > following else []
        shown.append(_shown(stack[place]) | ({} if own[place] else {"library": True}))
        following = place + 1
    return shown + ([{"folded": len(stack) - following}] if following < len(stack) else [])


def _shown(frame: traceback.FrameSummary) -> dict[str, Any]:
    return {"file": _file(frame.filename), "line": frame.lineno, "function": frame.name, "code": _code(frame)}


def _code(frame: traceback.FrameSummary) -> str:
    """Return the source line of a frame. Python reads it from the file, which may have changed since it was loaded."""
    return cut((frame.line or "").strip(), MOST_OF_A_LINE)


#: Packages that the engine calls by itself, to read and write values: no workflow is in them.
_OF_THE_ENGINE = frozenset({"msgspec", "pydantic", "pydantic_core"})


@cache
def _home(filename: str) -> str | None:
    """Return the package that an installed file is in; empty for a file that is not installed.

    None: it is the engine's own, or Python's.
    """
    path = os.path.abspath(filename) if not filename.startswith("<") else filename
    if path.startswith(("<frozen", _ENGINE)):
        return None
    for root in _PACKAGES:
        if path.startswith(root):
            return path[len(root) :].split(os.sep)[0]
    return None if path.startswith(_PYTHON) else ""


def _folders(*names: str) -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = {os.path.abspath(paths[name]) + os.sep for name in names if paths.get(name)}
    return tuple(sorted(found | {os.path.realpath(path) + os.sep for path in found}))


_ENGINE = os.path.dirname(inspect.getfile(QuireError)) + os.sep
_PACKAGES = _folders("purelib", "platlib")
_PYTHON = _folders("stdlib", "platstdlib")


def _file(filename: str) -> str:
    """Return a file's name as it is shown: relative to where the process works if it lies there."""
    try:
        return Path(filename).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return filename[-MOST_OF_A_LINE:]


def _short(filename: str) -> str:
    return Path(filename).name


def _bounded(links: list[Link]) -> tuple[Link, ...]:
    """Return the trace with as many frames as there is room for. The innermost ones of each error stay longest."""
    most = FIRST_FRAMES + LAST_FRAMES
    while len(dump(links)) > MOST_OF_A_TRACE and most > 1:
        most //= 2
        links = [link | {"frames": _fewer(link["frames"], most)} for link in links]
    return tuple(links)


def _fewer(frames: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    if len(frames) <= most:
        return frames
    gone, left = frames[:-most], frames[-most:]
    return [{"folded": sum(frame.get("folded", 1) for frame in gone)}, *left]
