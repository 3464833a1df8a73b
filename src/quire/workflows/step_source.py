"""What a step's source code says before any record comes to it: signals, people, children.

Only what is certain is named. A name that is computed, or a ``run`` that is handed to another function, makes the list
open: then nothing is refused because of it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass
class Source:
    """What the source of one step names."""

    #: The signals that it waits for, each with the type of its value where that is known.
    signals: dict[str, Any] = field(default_factory=dict)
    #: Whether these are all.
    closed: bool = True
    #: The people and groups that its questions are put to.
    people: list[str] = field(default_factory=list)
    #: What it gives to ``run.child`` and ``run.map``, each with the name of the method and the line.
    children: list[tuple[str, Any, int]] = field(default_factory=list)
    #: How it calls the methods of its run.
    calls: list[Call] = field(default_factory=list)
    #: What else it names of its run, with the line.
    attributes: list[tuple[str, int]] = field(default_factory=list)


class Call(NamedTuple):
    """One call of a method of the run, as it is written."""

    method: str
    line: int
    #: How many arguments it gives by position, and the names of the others.
    positional: int
    names: tuple[str, ...]
    #: Whether these are all: there is neither ``*`` nor ``**``.
    plain: bool
    #: Whether it stands alone on its line, so that nobody awaits it.
    dropped: bool


_UNKNOWN = object()


def source_of(fn: Callable[..., Any]) -> Source:
    """Read the source of a step's function."""
    inner = inspect.unwrap(fn)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inner)))
        scope = inspect.getclosurevars(inner)
    except (OSError, TypeError, ValueError, SyntaxError):
        return Source(closed=False)
    function = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return Source(closed=False)
    places = [*function.args.posonlyargs, *function.args.args]
    if not places:
        return Source(closed=False)
    names = {**getattr(inner, "__globals__", {}), **scope.nonlocals}
    code = inner.__code__
    own = {*code.co_varnames, *code.co_cellvars}
    known = {name: value for name, value in names.items() if name not in own}
    # A decorator, if there is one, is on the first line of the source.
    reader = _Reader(places[0].arg, known, code.co_firstlineno - 1)
    for line in function.body:
        reader.visit(line)
    if reader.replaced:
        return Source(closed=False)
    return reader.found


class _Reader(ast.NodeVisitor):
    def __init__(self, run: str, names: Mapping[str, Any], before: int) -> None:
        self._run = run
        self._names = names
        self._before = before
        self._alone: ast.expr | None = None
        self.found = Source()
        #: The name of the run comes to stand for something else.
        self.replaced = False

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == self._run:  # it goes elsewhere: what is asked for there is not known
            self.found.closed = False
            self.replaced |= isinstance(node.ctx, ast.Store)

    def visit_arg(self, node: ast.arg) -> None:
        self.replaced |= node.arg == self._run  # of a function within the step

    def visit_Expr(self, node: ast.Expr) -> None:
        self._alone = node.value
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._is_run(node.value):
            self.generic_visit(node)
        else:
            self.found.attributes.append((node.attr, self._line(node)))
            if node.attr == "wait":  # not called here, but kept
                self.found.closed = False

    def _line(self, node: ast.expr) -> int:
        return self._before + node.lineno

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and self._is_run(called.value):
            self._asked(called.attr, node)
            for part in (*node.args, *node.keywords):
                self.visit(part)
            return
        self.generic_visit(node)

    def _is_run(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._run

    def _asked(self, method: str, node: ast.Call) -> None:
        words = {word.arg: word.value for word in node.keywords if word.arg}
        plain = not any(isinstance(one, ast.Starred) for one in node.args) and len(words) == len(node.keywords)
        dropped = node is self._alone
        self.found.calls.append(Call(method, self._line(node), len(node.args), tuple(words), plain, dropped))
        if method == "wait":
            name = self._value(node.args[0] if node.args else words.get("signal"))
            type_ = self._value(node.args[1] if len(node.args) > 1 else words.get("type"))
            if isinstance(name, str):
                self.found.signals[name] = Any if name in self.found.signals or type_ is _UNKNOWN else type_
            else:
                self.found.closed = False
        elif method == "ask":
            self._people(self._value(words.get("by")))
            later = words.get("escalate")
            if isinstance(later, ast.Tuple) and len(later.elts) == 2:
                self._people(self._value(later.elts[1]))
        elif method in ("child", "map") and (node.args or "workflow" in words):
            value = self._value(node.args[0] if node.args else words["workflow"])
            if value is not _UNKNOWN:
                self.found.children.append((method, value, self._line(node)))

    def _people(self, by: Any) -> None:
        names = [by] if isinstance(by, str) else by if isinstance(by, list | tuple) else []
        self.found.people += [name for name in names if isinstance(name, str)]

    def _value(self, node: ast.expr | None) -> Any:
        """What an expression stands for, if that is certain: a literal, or a name of the module."""
        if node is None:
            return _UNKNOWN
        if isinstance(node, ast.Name):
            import builtins

            return self._names.get(node.id, getattr(builtins, node.id, _UNKNOWN))
        if isinstance(node, ast.Attribute):
            value = self._value(node.value)
            return getattr(value, node.attr, _UNKNOWN) if inspect.ismodule(value) else _UNKNOWN
        if isinstance(node, ast.List | ast.Tuple):
            return [self._value(one) for one in node.elts]
        return node.value if isinstance(node, ast.Constant) else _UNKNOWN
