"""The measures of the house: what the code of `src/quire` may not exceed.

Each measure is a ceiling that only falls. A test that fails names the file and the remedy. Whoever brings a figure down
writes the new figure here, in the same commit. A ceiling goes up for a feature only, and the commit says for which.

`python -m tests.test_house` prints the figures as they are now.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).parent.parent / "src" / "quire"

#: Lines of all files. The engine with everything around it, without the emulator and without quire-adk.
MOST_LINES = 95_000
#: Modules that stand side by side in one folder, and the folders that have more.
MOST_FILES = 28
MORE_FILES: dict[str, int] = {}
#: A class, its own base classes, and theirs. The contract of a store and the store are two. Errors do not count.
MOST_DEPTH = 2
DEEPER = {
    "agents.blueprint.blueprint.ReducerSpec": 3,
    "testing.conformance.LedgerConformance": 3,
    "testing.faults.HoldingLedger": 3,
    "testing.faults.LossyLedger": 3,
    "testing.trial._Mortal": 3,
}
#: Lines of a function, and ways through it.
MOST_FUNCTION_LINES = 60
MOST_COMPLEXITY = 20
#: Where the word `told` stands: the name of a stored key that is older than this rule. Nowhere else.
TOLD = {"surfaces/alerts/book.py": 1}


class Function(NamedTuple):
    name: str
    lines: int
    complexity: int


@cache
def sources() -> dict[str, str]:
    """Every module of the engine, by its path under `src/quire`."""
    files = sorted(SRC.rglob("*.py"))
    return {str(path.relative_to(SRC)): path.read_text(encoding="utf-8") for path in files}


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in sources().items()}


def functions() -> Iterator[Function]:
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Function(f"{name} {node.name}", (node.end_lineno or 0) - node.lineno + 1, complexity(node))


def most(measure: str) -> dict[str, int]:
    """This measure of every function. Of functions with the same name in one file, the one that has the most."""
    found: dict[str, int] = {}
    for one in functions():
        found[one.name] = max(getattr(one, measure), found.get(one.name, 0))
    return found


def complexity(function: ast.AST) -> int:
    """How many ways lead through a function, counting each operand of `and` and `or`. Inner functions count apart."""
    count = 1
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        match node:
            case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler():
                count += 1
            case ast.comprehension(ifs=ifs):
                count += 1 + len(ifs)
            case ast.BoolOp(values=values):
                count += len(values) - 1
            case ast.match_case():
                count += 1
        nodes += ast.iter_child_nodes(node)
    return count


_ROW = ("quire.model.row", "Row")


def depths() -> dict[str, int]:
    """How many of our own classes stand above each class, itself among them. Protocols and errors do not count."""
    bases: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path, tree in trees().items():
        module = "quire." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        known = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0] for base in node.bases]
                bases[module, node.name] = [known.get(name, (module, name)) for name in names]

    def errs(place: tuple[str, str]) -> bool:
        named = place[1].endswith(("Error", "Exception", "Warning")) and place not in bases
        return named or any(errs(base) for base in bases.get(place, ()))

    def depth(place: tuple[str, str]) -> int:
        if place not in bases or any(base[1] == "Protocol" for base in bases[place]) or place == _ROW:
            return 0
        return 1 + max((depth(base) for base in bases[place]), default=0)

    return {
        f"{module}.{name}".removeprefix("quire."): depth((module, name))
        for module, name in bases
        if not errs((module, name))
    }


def told() -> dict[str, int]:
    """The files that use the word `told`, outside of `testing`: code, scripts and pages, in names and in sentences.

    `ToldClock` is a public name. A migration is stored by its text, so its comments stay.
    """
    counts = {
        str(path.relative_to(SRC)): path.read_text(encoding="utf-8").replace("ToldClock", "").lower().count("told")
        for path in SRC.rglob("*")
        if path.suffix in {".py", ".js", ".css", ".html", ".gs"} and not path.is_relative_to(SRC / "testing")
    }
    return {name: count for name, count in counts.items() if count}


#: Names that the code had once, or a word with a second meaning, and what is said now. Table: `docs/glossary.md`.
OLD_WORDS = {
    r"\bStay\b": "Hold (a worker's hold on a record), or Pass (one execution of a step's function)",
    r"\b(Sketch|Meeting|Claiming|Changing)\b": "Draft",
    r"\bdef transition\b": "the moves of rules/moves.py",
    r"\b(_simply_moved|_gives_way|without_wish|_hears)\b": "the function of rules/ that is named after the rule",
    r"\b(Leased|_claimed_lease)\b": "Sole",
    r"\b([Dd]oors|ways_in)\b": "gate, auth",
    r"\btelling\b": "words",
    r"\b[Mm]end(s|ed|ing)?\b": "correct, repair, write anew",
    r"\bill\b": "problem",
    r"\bbears\b": "tolerates, has",
    r"\bspill(ed|s)?\b": "long value",
    r"\b(bells?|rings the)\b": "notification",
}


def old_words() -> list[str]:
    return [
        f"{name}:{number}: {found[0]!r}: say {now}"
        for name, text in sources().items()
        for old, now in OLD_WORDS.items()
        for number, line in enumerate(text.split("\n"), 1)
        if (found := re.search(old, line))
    ]


_BY_POSITION = re.compile(r"tuple\.__new__|field_names\(\w+\)(\.index\(|\[)|field_values\([^)]*\)\[")


def positional() -> dict[str, int]:
    counts = {
        name: sum(bool(_BY_POSITION.search(line)) for line in text.split("\n")) for name, text in sources().items()
    }
    return {name: count for name, count in counts.items() if count}


#: A rule that is spelled out again: how it looks, and where it may stand. Everywhere else ask `rules/conditions.py`.
SPELLED = {
    "its lease ran out": (r"GRACE \*", {"ledger/sole.py"}),  # a lease of a setting, not of a worker
    "its run is past its end": (r"run_until (<|>=) ", set()),
    "in doubt": (r"NEEDS_APPROVAL.*open_intents", set()),
    "of a halted epoch": (r"epoch (<|>=) \w*\.?floor", set()),
    "left alone by its parent": (r"abandoned (AND .left|and \w+\.left)", set()),
    "may be under way": (r"act_by (IS NULL|is None) (OR|or) ", set()),
    "closed long ago": (r"closed (IS NOT NULL|is not None) (AND|and) ", set()),
}


def spelled_again() -> list[str]:
    return [
        f"{rule}: {name}"
        for rule, (pattern, allowed) in SPELLED.items()
        for name, text in sources().items()
        if re.search(pattern, text) and name not in allowed | {"rules/conditions.py"}
    ]


def over(found: dict[str, int], most: int, known: dict[str, int]) -> list[str]:
    """What exceeds the ceiling for all, or the one that it has of its own."""
    return [f"{name}: {count}" for name, count in sorted(found.items()) if count > known.get(name, most)]


def folders() -> Counter[str]:
    return Counter(name.rpartition("/")[0] for name in sources() if not name.endswith("__init__.py"))


def test_the_engine_does_not_grow() -> None:
    lines = sum(text.count("\n") for text in sources().values())
    assert lines <= MOST_LINES, f"src/quire has {lines} lines: delete what is no longer used, or say in the commit why"


def test_no_folder_is_a_heap() -> None:
    heaps = over(folders(), MOST_FILES, MORE_FILES)
    assert not heaps, f"part these folders by what their files are about: {heaps}"


def test_no_class_is_spread_over_files_by_inheritance() -> None:
    deep = over(depths(), MOST_DEPTH, DEEPER)
    assert not deep, f"give these classes their parts as objects, instead of inheriting from them: {deep}"


def test_no_function_is_too_long() -> None:
    long = over(most("lines"), MOST_FUNCTION_LINES, {})
    assert not long, f"name the phases of these functions, and make each one a function: {long}"


def test_no_function_is_too_complex() -> None:
    tangled = over(most("complexity"), MOST_COMPLEXITY, {})
    assert not tangled, f"part these functions, or make a table of their cases: {tangled}"


def test_the_word_told_is_gone() -> None:
    more = over(told(), 0, TOLD)
    assert not more, f"say what it is (a body, a line, an answer, given_now, as_json, in_words): {more}"


def test_a_thing_has_one_name() -> None:
    old = old_words()
    assert not old, f"these words are out: {old}"


def test_rows_are_read_by_name() -> None:
    more = over(positional(), 0, {})
    assert not more, f"use the names of a row's fields, not the places of its columns: {more}"


@pytest.mark.parametrize(
    ("code", "ways"),
    [
        ("def f(): pass", 1),
        ("def f(a, b):\n if a and b or a:\n  return 1", 4),
        ("def f(x):\n return [y for y in x if y]", 3),
        ("def f(x):\n def g():\n  if x: pass", 1),
        ("def f(x):\n match x:\n  case 1: pass\n  case _: pass", 3),
    ],
)
def test_ways_through_a_function_are_counted(code: str, ways: int) -> None:
    [function] = ast.parse(code).body
    assert complexity(function) == ways


def test_a_condition_is_spelled_in_one_place() -> None:
    again = spelled_again()
    assert not again, f"use the predicate or the SQL of rules/conditions.py: {again}"
    for rule, (pattern, _) in SPELLED.items():
        assert re.search(pattern, sources()["rules/conditions.py"]), f"no pattern finds {rule!r} any more: mend it"


def main() -> None:
    figures = {
        "lines": sum(text.count("\n") for text in sources().values()),
        "files": over(folders(), MOST_FILES, {}),
        "depth": over(depths(), MOST_DEPTH, {}),
        "long": over(most("lines"), MOST_FUNCTION_LINES, {}),
        "complex": over(most("complexity"), MOST_COMPLEXITY, {}),
        "told": over(told(), 0, {}),
        "positional": over(positional(), 0, {}),
    }
    sys.stdout.write("".join(f"{name}: {figure}\n" for name, figure in figures.items()))


if __name__ == "__main__":
    main()
