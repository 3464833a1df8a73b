"""Which acts on Google the code of workflows uses, and which scopes and APIs these need. Nothing is run for it.

The compiled code of each step is read, and of the user's own functions that it names: `run.once(drive.folder, …)`
holds the two names `drive` and `folder`, which are looked up where the function would look them up.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from quire.errors import InputError, did_you_mean
from quire.workflows.effect import Effect
from quire.workflows.workflow import Workflow
from quire.workspace.scopes import NEEDS, full, name_of

DRAFT, SEND_ONLY = "draft", "send-only"

#: What is waited for, by the word that the code holds, and the acts that give such a name.
_WAITS = {
    "replied": ("sent.replied", ("gmail.send", "gmail.reply", "gmail.send_draft")),
    "answered": ("event.answered", ("calendar.event",)),
    "clicked": ("posted.clicked", ("chat.post",)),
}
#: These read or write files that somebody else made.
_FOREIGN = ("drive.copy", "drive.share", "drive.move")
#: Acts that send mail.
_MAIL = ("gmail.send", "gmail.reply", "gmail.send_draft")

#: What ``--add`` takes beside the names of scopes and of acts.
PRODUCTS: Mapping[str, tuple[str, ...]] = {
    "drive": ("drive",),
    "docs": ("documents",),
    "slides": ("presentations",),
    "sheets": ("spreadsheets",),
    "gmail": ("gmail.compose", "gmail.metadata"),
    "calendar": ("calendar.events",),
    "chat": ("chat.messages.create",),
    "tasks": ("tasks",),
    "forms": ("forms.responses.readonly", "forms.body.readonly"),
    "pubsub": ("pubsub",),
}
#: The host of each API, as the console of Google Cloud names it.
HOSTS = {"calendar": "calendar-json"}
#: The API whose methods take a scope, by the first word of its short name.
_API_OF = {"documents": "docs", "presentations": "slides", "spreadsheets": "sheets"}


@dataclass(frozen=True, slots=True)
class Uses:
    """What the flows need of Google."""

    #: The acts by the workflow that uses them.
    acts: Mapping[str, tuple[str, ...]]
    #: Short names, in the order of need.
    scopes: tuple[str, ...]

    @property
    def apis(self) -> tuple[str, ...]:
        """The hosts of the APIs that must be switched on."""
        words = [NEEDS[act].api for acts in self.acts.values() for act in acts]
        words += [api_of(scope) for scope in self.scopes]
        return tuple(dict.fromkeys(host_of(word) for word in words if word))

    @property
    def all_acts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(act for acts in self.acts.values() for act in acts))

    def wanted_by(self, scope: str) -> str:
        """The first workflow and act that need this scope, for people."""
        for name, acts in self.acts.items():
            for act in acts:
                if scope == NEEDS[act].foreign or any(scope in group for group in NEEDS[act].scopes):
                    return f"{name} uses {act}"
        return ""


def host_of(api: str) -> str:
    return f"{HOSTS.get(api, api)}.googleapis.com"


def api_of(scope: str) -> str:
    """The API whose methods take a scope; empty for one that only says who somebody is."""
    word = scope.rpartition("/")[2].partition(".")[0]
    found = _API_OF.get(word, word)
    return found if found in PRODUCTS else ""


def uses_of(workflows: Iterable[Workflow[Any, Any, Any]], *, mail: str = DRAFT, sheet: bool = False) -> Uses:
    """Return what these workflows use. ``sheet``: the records, or what people see of them, lie in a sheet."""
    acts = {one.name: tuple(act for act in NEEDS if act in found) for one in workflows if (found := acts_of(one))}
    return Uses(acts, scopes_of([act for each in acts.values() for act in each], mail=mail, sheet=sheet))


def scopes_of(acts: Sequence[str], *, mail: str = DRAFT, sheet: bool = False) -> tuple[str, ...]:
    """Return the fewest and narrowest scopes with which these acts can be done."""
    fixed = [*(("drive", "spreadsheets") if sheet else ()), *(NEEDS[act].foreign for act in acts if act in _FOREIGN)]
    groups = [group for act in acts for group in _groups(act, mail)]
    chosen = list(dict.fromkeys(fixed))
    for group in groups:
        if not set(chosen) & set(group):
            chosen.append(group[0])
    for scope in [scope for scope in chosen if scope not in fixed]:  # what came later may make an earlier one needless
        rest = set(chosen) - {scope}
        if all(rest & set(group) for group in groups):
            chosen.remove(scope)
    return tuple(chosen)


def _groups(act: str, mail: str) -> tuple[tuple[str, ...], ...]:
    groups = NEEDS[act].scopes
    return (("gmail.send", *groups[0]),) if mail == SEND_ONLY and act in _MAIL else groups


def widened(words: Iterable[str], *, mail: str = DRAFT) -> tuple[str, ...]:
    """Return the scopes that ``--add`` names: a product, an act, or a scope itself."""
    found: list[str] = []
    known = {scope for needs in NEEDS.values() for group in needs.scopes for scope in group}
    for word in words:
        if word == "gmail" and mail == SEND_ONLY:
            found.append("gmail.send")
        elif word in PRODUCTS:
            found += PRODUCTS[word]
        elif word in NEEDS:
            found += scopes_of([word], mail=mail)
        elif word in known or word == "gmail.send" or "://" in word:
            found.append(word)
        else:
            raise InputError(f"there is no product, act or scope {word!r}{did_you_mean(word, [*PRODUCTS, *NEEDS])}")
    return tuple(dict.fromkeys(found))


def short(scope: str) -> str:
    """The name of a scope without what all of them begin with."""
    return scope.removeprefix(full(""))


# -- reading code --------------------------------------------------------------------------------------------------


def acts_of(workflow: Workflow[Any, Any, Any]) -> set[str]:
    """Return the names of the acts, looks, waits and sources that a workflow uses."""
    found, words = set[str](), set[str]()
    for step in workflow.steps.values():
        if isinstance(fn := inspect.unwrap(step.fn) if step.fn is not None else None, FunctionType):
            _read(fn, found, words, set())
    for source, _ in workflow.sources:
        if (kind := type(source).__name__) in NEEDS:
            found.add(kind)
    for word, (name, givers) in _WAITS.items():
        if word in words and found & set(givers):
            found.add(name)
    return found


def _read(fn: FunctionType, found: set[str], words: set[str], seen: set[CodeType]) -> None:
    if fn.__code__ in seen:
        return
    seen.add(fn.__code__)
    for value in _named(fn, words):
        if isinstance(value, Effect):
            found.add(name_of(value) or value.name)
            inner = inspect.unwrap(value.act)
        else:
            inner = value
        if not isinstance(inner, FunctionType):
            continue
        words_ = inner.__module__.split(".")
        if words_[:2] == ["quire", "workspace"] and len(words_) > 2:
            found.add(f"{words_[2]}.{inner.__name__}")
        elif _own(inner):
            _read(inner, found, words, seen)
    found &= NEEDS.keys()


def _named(fn: FunctionType, words: set[str]) -> Iterator[Any]:
    """Yield what the dotted names in a function stand for, and gather the last words of all of them."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))
    for code in _codes(fn.__code__):
        value: Any = None
        for step in dis.get_instructions(code):
            name = str(step.argval)
            match step.opname:
                case "LOAD_GLOBAL" | "LOAD_NAME":
                    value = fn.__globals__.get(name)
                case "LOAD_DEREF" if name in cells:
                    value = _content(cells[name])
                case "LOAD_ATTR" | "LOAD_METHOD":
                    words.add(name)
                    value = inspect.getattr_static(value, name, None) if value is not None else None
                case "CACHE" | "EXTENDED_ARG" | "PUSH_NULL":
                    continue
                case _:
                    value = None
            if value is not None:
                yield value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is not filled yet
        return None


_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def _own(fn: FunctionType) -> bool:
    """Whether this is the user's own code: what is installed, and the engine itself, are not read."""
    if fn.__module__.partition(".")[0] in (*sys.stdlib_module_names, "quire"):
        return False
    return not fn.__code__.co_filename.startswith(_INSTALLED)
