"""Makes docs/reference.md from the code: ``python docs/tools/reference.py``.

Signatures, defaults and docstrings are those of the code. What a name raises is found in the code, too: every
``raise`` of an error of Quire in it, and in the functions that it calls by name. Examples are statements of the files
in ``examples/`` and of the pages, which tests run. Of a class those methods are shown that docs/api.md names.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import quire
import quire.testing
from quire.errors import QuireError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
#: How deep the search for errors follows calls.
DEPTH = 5
#: What statements call an object of a class, in the examples.
CALLED = {
    "Run": "run",
    "SyncRun": "run",
    "Client": "client|q",
    "PlainClient": "q",
    "Handle": "record|handle",
    "Trial": "trial",
    "TrialRecord": "record",
    "Act": "act",
}
_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


# -- examples ---------------------------------------------------------------------------------------------------------


class Statement(NamedTuple):
    place: str
    code: str
    #: The names that its file imports from Quire.
    imported: frozenset[str]


@functools.cache
def statements() -> list[Statement]:
    """Every statement of the examples and pages but imports, the inner ones too."""
    found: list[Statement] = []
    sources = [
        (f"examples/{path.name}", path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("examples/*.py"))
    ]
    for page in [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/guides").glob("*.md")),
        *sorted((ROOT / "docs/workspace").glob("*.md")),
    ]:
        if page != PAGE:
            name = page.relative_to(ROOT).as_posix()
            sources += [(name, code) for code in _FENCE.findall(page.read_text(encoding="utf-8"))]
    for place, code in sources:
        tree = ast.parse(code)
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "quire"
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
                first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))])
                lines = code.splitlines()[first - 1 : node.end_lineno]
                found.append(Statement(place, textwrap.dedent("\n".join(lines)), frozenset(imported)))
    return found


def example(pattern: str, imported: str = "") -> tuple[str, str]:
    """Return the shortest statement that a pattern finds, and where it stands; nothing if there is none.

    ``imported`` is the name that its file must import, so that another thing of that name is not taken for it.
    """
    fitting = [
        one for one in statements() if re.search(pattern, one.code) and (not imported or imported in one.imported)
    ]
    # A body of nothing but dots shows nothing.
    best = min(fitting, key=lambda one: (one.code.rstrip().endswith("..."), len(one.code)), default=None)
    return (best.code, best.place) if best else ("", "")


def example_of(name: str) -> tuple[str, str]:
    if name in ("open", "aopen", "main"):
        return example(rf"quire\.{name}\(")
    if name == "Answer":
        return example(r"= await run\.ask\(")
    return example(rf"(?<![\w.\"'])@?{name}\b", name)


# -- what is raised ---------------------------------------------------------------------------------------------------


def raised(function: Callable[..., Any]) -> list[type[BaseException]]:
    found: dict[str, type[BaseException]] = {}
    _raised(function, DEPTH, found, set())
    return sorted(found.values(), key=lambda kind: kind.__name__)


def _raised(function: Any, depth: int, found: dict[str, type[BaseException]], seen: set[Any]) -> None:
    function = inspect.unwrap(getattr(function, "__func__", function))
    if function in seen or not isinstance(function, types.FunctionType) or not function.__module__.startswith("quire"):
        return
    seen.add(function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            kind = _named(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, function)
            if isinstance(kind, type) and issubclass(kind, QuireError | TimeoutError):
                found[kind.__name__] = kind
        elif isinstance(node, ast.Call) and depth:
            called = _named(node.func, function)
            _raised(vars(called).get("__init__") if isinstance(called, type) else called, depth - 1, found, seen)


def _named(node: ast.expr, function: types.FunctionType) -> Any:
    """What a name stands for in a function: of its module, or a method of the class in which it stands."""
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id == "self":
            owner = function.__globals__.get(function.__qualname__.partition(".")[0])
            return getattr(owner, node.attr, None)
        return getattr(function.__globals__.get(node.value.id), node.attr, None)
    return None


# -- one name ---------------------------------------------------------------------------------------------------------


def signature(name: str, thing: Any) -> str:
    """Return the call with its types and defaults, one parameter on a line if it is long."""
    overloads = typing.get_overloads(thing) if isinstance(thing, types.FunctionType) else []
    chosen = max(overloads, key=lambda one: len(inspect.signature(one).parameters)) if overloads else thing
    told = inspect.signature(chosen)
    shown = [
        one for one in told.parameters.values() if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]
    parts, kinds = [_parameter(one) for one in shown], [one.kind for one in shown]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        parts.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    back = "" if told.return_annotation in (inspect.Signature.empty, "None") else f" -> {_type(told.return_annotation)}"
    short = f"{name}({', '.join(parts)}){back}"
    if len(short) <= 100:
        return short
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){back}"


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" * ((one.kind is one.VAR_POSITIONAL) + 2 * (one.kind is one.VAR_KEYWORD))
    kind = "" if one.annotation is inspect.Parameter.empty else f": {_type(one.annotation)}"
    if one.default is inspect.Parameter.empty:
        return f"{stars}{one.name}{kind}"
    default = repr(one.default)
    if isinstance(one.default, type):
        default = one.default.__name__
    elif one.default is Ellipsis or re.search(r" at 0x|<factory>|<function", default) or len(default) > 60:
        default = "…"
    return f"{stars}{one.name}{kind} = {default}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:quire|typing|collections\.abc|datetime)(?:\.\w+)*\.(?=\w)", "", text)


def fields(kind: type) -> Iterator[str]:
    """The fields of a class with the comments that stand above them in the source (``#:``)."""
    try:
        lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    except (OSError, TypeError):
        return
    told: list[str] = []
    for line in lines:
        comment = re.match(r"\s{4}#: ?(.*)", line)
        field = re.match(r"\s{4}([a-z]\w*): ([^=]+?)(?: = (.*))?$", line)
        if comment:
            told.append(comment[1])
            continue
        if field and not field[1].startswith("_"):
            kind_of = _type(field[2].strip()).replace("|", "\\|")
            yield f"| `{field[1]}` | `{kind_of}` | {' '.join(told)} |"
        told = []


def section(name: str, thing: Any, level: str, shown: tuple[str, str]) -> Iterator[str]:
    """What stands on the page for one name."""
    yield f"{level} {name}"
    yield ""
    call = name.rpartition(".")[2] if "." in name else name
    if isinstance(thing, types.FunctionType) or (
        isinstance(thing, type) and not issubclass(thing, enum.Enum | Exception)
    ):
        try:
            told = signature(call, thing)
        except (TypeError, ValueError):
            told = ""
        if told:
            yield f"```text\n{told}\n```\n"
    elif isinstance(thing, property):
        yield f"A value of type `{_type(inspect.signature(thing.fget).return_annotation)}`.\n" if thing.fget else ""
    doc = inspect.getdoc(thing) if not isinstance(thing, dict | types.UnionType) else ""
    if doc and not doc.startswith("Represent a PEP 604"):
        yield prose(doc)
        yield ""
    if isinstance(thing, type) and not issubclass(thing, enum.Enum | Exception):
        rows = list(fields(thing))
        if rows:
            yield "\n".join(["| field | type | is |", "|---|---|---|", *rows])
            yield ""
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        yield ", ".join(f"`{one.name}`" for one in thing)
        yield ""
    if isinstance(thing, types.FunctionType):
        kinds = raised(thing)
        if kinds:
            yield (
                "Raises: "
                + ", ".join(f"[`{kind.__name__}`](errors.md)" for kind in kinds if kind is not TimeoutError)
                + (", `TimeoutError`" if TimeoutError in kinds else "")
                + "."
            )
            yield ""
    code, place = shown
    if code:
        yield f"Example, from `{place}`:\n\n```text\n{code}\n```\n"


def prose(doc: str) -> str:
    """A docstring as Markdown: double backticks become single ones, indented code becomes a block."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", doc):
        if paragraph.startswith("    "):
            parts.append("```text\n" + textwrap.dedent(paragraph).rstrip() + "\n```")
        else:
            parts.append(paragraph)
    return re.sub(r"``([^`]+)``", r"`\1`", "\n\n".join(parts))


def methods(kind: type, named: set[str]) -> Iterator[tuple[str, Any]]:
    for owner in reversed(inspect.getmro(kind)):
        if not owner.__module__.startswith("quire"):
            continue
        for name, thing in vars(owner).items():
            if name in named and not name.startswith("_") and not isinstance(thing, types.MemberDescriptorType):
                yield name, thing if isinstance(thing, property) else inspect.unwrap(getattr(thing, "__func__", thing))


def markdown() -> str:
    # What stands in the code of the page that lists the interface: its words name the methods that are part of it.
    listed = re.sub(
        r"^```.*?^```", "", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    named = {word for code in re.findall(r"`([^`]+)`", listed) for word in re.findall(r"[a-z_]\w*", code)}
    parts = [
        "# Reference",
        "",
        "*Made by `python docs/tools/reference.py` from the code; a test fails when it is stale.*",
        "",
        (
            "Every name that is imported from `quire` and `quire.testing`, in alphabetical order."
            " [What you import](api.md) says what they are for; [errors](errors.md) says what each error means and what"
            " to do. Examples are statements of files and pages that the tests run."
        ),
        "",
    ]
    for module in (quire, quire.testing):
        parts += [f"## {module.__name__}", ""]
        for name in sorted(module.__all__, key=str.lower):
            thing = getattr(module, name)
            parts += section(name, thing, "###", example_of(name))
            if not isinstance(thing, type) or issubclass(thing, enum.Enum | Exception):
                continue
            for method, function in dict(methods(thing, named)).items():
                who = CALLED.get(name, r"[a-z_]+")
                parts += section(f"{name}.{method}", function, "####", example(rf"\b(?:{who})\.{method}\b"))
    return "\n".join(parts).rstrip() + "\n"


def silent() -> list[str]:
    """The names for which no example is found."""
    return [name for name in quire.__all__ if not example_of(name)[0]]


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
