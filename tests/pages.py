"""Pages that run: the blocks of a page, from top to bottom, as a reader would follow them in one empty directory.

- ``python`` whose first line is ``# name.py`` is that file. Other ``python`` runs, in one namespace for the page;
  ``await`` may stand at its top.
- ``toml``, ``csv``, ``jsonl`` whose first line is ``# name`` (for data ``name:``) is that file.
- ``console``: what follows ``$ `` is typed in a shell, what follows it is told: each line is looked for in the answer,
  and ``…`` stands for anything. A command ends with 0, unless ``# exit 3`` stands behind it. ``quire up`` goes on
  beside the others until the page ends. What sets up a machine (``NOT_HERE``) is not typed.
- ``text`` is only to be read. ``<!-- python … -->`` runs too, and is not shown.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: What is not typed, by how it begins, and why.
NOT_HERE = {
    "git ": "there is no public address to clone from",
    "make ": "it takes minutes; .ci/run and tests/first_hour do what these targets do",
    "pip ": "it changes the environment of the tests; tests/first_hour installs the wheels",
    "uvx ": "it installs the wheel once more; tests/first_hour does",
    ". .venv/": "the shell of the tests has its environment",
    "cd ": "a page is followed in one directory",
    "crontab ": "it changes the machine",
}
_BLOCK = re.compile(r"^(?:```(\w+)\n(.*?)^```$|<!-- (python|console)\n(.*?)^-->$)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"\s+# exit (\d+)(?::.*)?$")


class Block(NamedTuple):
    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that do something."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        kind, inner = (match[1], match[2]) if match[1] else (match[3], match[4])
        found.append(Block(kind, inner, text.count("\n", 0, match.start()) + 1))
    return found


class Command(NamedTuple):
    typed: str
    told: list[str]
    code: int


def commands(text: str) -> Iterator[Command]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ ") or (lines and not lines[0].startswith("$ ")):
            if lines:
                yield _command(lines)
            lines = [line]
        else:
            lines.append(line)
    if lines:
        yield _command(lines)


def _command(lines: list[str]) -> Command:
    typed = lines.pop(0).removeprefix("$ ")
    while typed.endswith("\\") and lines:
        typed = typed[:-1] + lines.pop(0)
    code = _CODE.search(typed)
    return Command(_CODE.sub("", typed), [line for line in lines if line.strip()], int(code[1]) if code else 0)


class Reader:
    """Somebody who follows a page, in the current directory."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.loop = asyncio.new_event_loop()
        self.beside: list[subprocess.Popen[bytes]] = []
        #: How many commands were typed.
        self.typed = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.beside:
            process.send_signal(signal.SIGTERM)
        for process in self.beside:
            process.communicate(timeout=30)
        self.loop.close()
        _forget()

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            try:
                self.do(block)
            except AssertionError as error:
                raise AssertionError(f"{page.name}, line {block.line}: {error}") from error
            except Exception as error:
                raise AssertionError(f"{page.name}, line {block.line}: {type(error).__name__}: {error}") from error

    def do(self, block: Block) -> None:
        name = _file_name(block)
        if name is not None:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            shown = block.text if block.kind in ("python", "toml") else block.text.partition("\n")[2]
            Path(name).write_text(shown, encoding="utf-8")
        elif block.kind == "python":
            self.run(block.text)
        elif block.kind == "console":
            for command in commands(block.text):
                self.type(command)

    def run(self, code: str) -> None:
        made = compile(code, "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if made.co_flags & inspect.CO_COROUTINE:
            self.loop.run_until_complete(eval(made, self.names))
        else:
            exec(made, self.names)

    def type(self, command: Command) -> None:
        if command.typed.startswith(tuple(NOT_HERE)):
            return
        self.typed += 1
        words = shlex.split(command.typed, comments=True)
        if words[:2] == ["quire", "up"]:
            self.beside.append(_beside(words))
            return
        code, told = _in_shell(command.typed)
        assert code == command.code, f"{command.typed!r} ends with {code}:\n{told}"
        for line in command.told:
            pattern = ".*?".join(re.escape(part) for part in re.split(r"\s*…\s*", line.strip()))
            found = re.search(re.sub(r"(?:\\ )+", r"\\s+", pattern), told)
            assert found is not None, f"{command.typed!r} does not tell {line!r}, but:\n{told}"


def _file_name(block: Block) -> str | None:
    first = block.text.partition("\n")[0]
    if block.kind in ("python", "toml"):
        found = re.fullmatch(r"# ([\w./-]+\.(?:py|toml))", first)
    else:
        found = re.fullmatch(r"([\w./-]+\.(?:csv|jsonl|json)):", first) if block.kind in ("csv", "jsonl") else None
    return found[1] if found is not None else None


def _forget() -> None:
    """Modules of the page's own directory."""
    here = str(Path.cwd())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(here):
            del sys.modules[name]


def _environment() -> dict[str, str]:
    own = str(Path(sys.executable).parent)
    return os.environ | {"PATH": f"{own}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


def _in_shell(typed: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", typed], env=_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    told = done.stdout + done.stderr
    assert "Traceback" not in told, told
    return done.returncode, told


def _beside(words: list[str]) -> subprocess.Popen[bytes]:
    """A process that goes on; it has said its first line when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quire.surfaces.cli", *words[1:], "--port", "0"],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, f"{words} ends at once"
    return process
