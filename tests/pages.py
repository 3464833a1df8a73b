"""Pages that run: the blocks of a page, from top to bottom, as a reader would follow them in one empty directory.

The reader has a terminal and a Python prompt, both of an environment in which only the built wheels are installed.

- ``console``: what follows ``$ `` is typed into one shell for the whole page, so that ``cd`` and ``export`` hold. The
  lines below it are looked for in the answer; ``…`` stands for anything. A command ends with 0, unless ``# exit 3``
  stands behind it. What goes on until Ctrl-C (``GOES_ON``) is typed into another terminal, and ends with the page.
- ``python`` whose first line is ``# name.py`` is that file. Other ``python`` is typed into one Python for the page, as
  into ``python -m asyncio``: ``await`` may stand at its top.
- ``toml`` and ``yaml`` whose first line is ``# name``, ``csv``, ``jsonl`` and ``json`` whose first line is ``name:``,
  are that file.
- ``text`` is only to be read. ``<!-- python … -->`` and ``<!-- console … -->`` run too, and are not shown.

What cannot run in such a place is named with its reason: a block by ``<!-- not here: reason -->`` above it, commands by
``NOT_HERE``, pages by ``NO_PLACE``.
"""

from __future__ import annotations

import ast
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests.wheels import installed

#: What is not typed on a page, by how it begins, and why.
NOT_HERE = {
    "make ": "it needs the clone; tests/first_hour/test_install.py types it there",
    "pip install ": "the environment of the pages has every extra; tests/first_hour/test_install.py types it",
    "uvx ": "tests/first_hour/test_install.py types it",
    ". .venv/bin/activate": "the shell of the pages has its environment",
}
#: Pages that cannot be followed from top to bottom anywhere, and why.
NO_PLACE = {
    "install.md": "it begins with a clone; tests/first_hour/test_install.py follows it with a clone of this repository",
    "deploy.md": "it needs Docker, a host with systemd, or a cloud account; tests/deploy does what can be done here",
}
#: How commands begin that go on until somebody ends them. They are typed into a terminal of their own. Others
#: say so: ``# until Ctrl-C`` stands behind them.
GOES_ON = ("quire up", "quire serve", "quire emulate", "quire init --emulate", "quire mcp --http", "hectograph ")
_UNTIL = re.compile(r"\s+# until Ctrl-C$")
_BLOCK = re.compile(
    r"^(?:(?P<not_here><!-- not here: .*? -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$"
    r"|<!-- (?P<hidden>python|console)\n(?P<done>.*?)^-->$)",
    re.DOTALL | re.MULTILINE,
)
_CODE = re.compile(r"\s+# exit (\d+)(?::.*)?$")
#: A shell with a loopback of its own: the ports that a page names are free there, and no other network is there.
_ALONE = (
    "import fcntl, os, socket, struct\n"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh14s', b'lo', 0x41, b''))\n"  # SIOCSIFFLAGS: up, running
    "os.execvp('bash', ['bash', '--noprofile', '--norc'])"
)
#: Reads code from one pipe, does it, and answers into another: nothing, or what went wrong.
_PROMPT = """
import ast, asyncio, inspect, json, sys, traceback
requests, answers = sys.argv[1:3]
names, loop = {"__name__": "__page__"}, asyncio.new_event_loop()
asyncio.set_event_loop(loop)
with open(requests) as requests, open(answers, "w") as answers:
    for line in requests:
        try:
            made = compile(json.loads(line), "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if made.co_flags & inspect.CO_COROUTINE:
                loop.run_until_complete(eval(made, names))
            else:
                exec(made, names)
            said = ""
        except BaseException:
            said = traceback.format_exc()
        print(json.dumps(said), file=answers, flush=True)
loop.close()
"""


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    here: bool = True


def blocks(page: Path) -> list[Block]:
    """The blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        kind, inner = (match["hidden"], match["done"]) if match["hidden"] else (match["kind"], match["text"])
        line = text.count("\n", 0, match.start()) + (2 if match["not_here"] else 1)
        found.append(Block(kind, inner, line, not match["not_here"]))
    return found


class Command(NamedTuple):
    typed: str
    answer: list[str]
    code: int
    goes_on: bool


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
    code, until = _CODE.search(typed), _UNTIL.search(typed)
    plain = _UNTIL.sub("", _CODE.sub("", typed))
    answer = [line for line in lines if line.strip()]
    return Command(plain, answer, int(code[1]) if code else 0, until is not None or plain.startswith(GOES_ON))


def listens(text: str) -> bool:
    """Whether a text types a command that goes on: such a command takes a fixed port."""
    return any(command.goes_on for line in text.splitlines() if line.startswith("$ ") for command in commands(line))


@functools.cache
def loopback_of_its_own() -> bool:
    """Whether this machine lets a page have one."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    return subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def reading(
    text: str,
    environment: Path,
    home: Path,
    *,
    not_here: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Reader]:
    """Somebody who will follow this text in the directory ``home``, with what is installed in ``environment``.

    Commands take the ports that are printed. Pages are followed side by side, so a page that takes a port has a
    loopback of its own, or, where the system allows none, waits for the others.
    """
    environ = {**installed(environment, home), **(variables or {})}
    not_here = NOT_HERE if not_here is None else not_here
    if not listens(text):
        with Reader(home, environ, not_here=not_here) as reader:
            yield reader
    elif loopback_of_its_own():
        with Reader(home, environ, not_here=not_here, alone=True) as reader:
            yield reader
    else:
        with open(Path(tempfile.gettempdir()) / "quire-pages.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with Reader(home, environ, not_here=not_here) as reader:
                yield reader


class Reader:
    """Somebody who follows a page in the directory ``home``, with a shell of their own."""

    def __init__(
        self, home: Path, environ: Mapping[str, str], *, alone: bool = False, not_here: Mapping[str, str] = NOT_HERE
    ) -> None:
        self.home = home
        self.environ = dict(environ)
        self.not_here = tuple(not_here)
        #: How many commands were typed.
        self.typed = 0
        #: Pipes and answers lie apart, so that the directory of the page holds what the page makes, and no more.
        self._pipes = Path(tempfile.mkdtemp(prefix="page-"))
        bash = ["unshare", "-rn", sys.executable, "-c", _ALONE] if alone else ["bash", "--noprofile", "--norc"]
        self._shell = subprocess.Popen(
            bash, cwd=home, env=self.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._beside: list[tuple[str, str, IO[str]]] = []
        self._python: tuple[IO[str], IO[str]] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        try:
            ended = [(typed, self._end(pid, pipe)) for pid, typed, pipe in self._beside]
            if self._python is not None:
                for pipe in self._python:
                    pipe.close()
            if self._shell.poll() is None:
                self._shell.communicate("wait\nexit\n", timeout=60)
        finally:
            self._shell.kill()
            self._shell.wait()
            shutil.rmtree(self._pipes, ignore_errors=True)
        if kind is None:
            # A program without a handler of its own ends by the signal.
            assert all(code in (0, 128 + signal.SIGTERM) for _, code in ended), ended

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            try:
                self.do(block)
            except AssertionError as error:
                raise AssertionError(f"{page.name}, line {block.line}: {error}") from error

    def do(self, block: Block) -> None:
        if not block.here:
            return
        name = file_name(block)
        if name is not None:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shown = block.text if block.kind in ("python", "toml", "yaml") else block.text.partition("\n")[2]
            path.write_text(shown, encoding="utf-8")
        elif block.kind == "python":
            self.run(block.text)
        elif block.kind == "console":
            for command in commands(block.text):
                self.type(command)

    def run(self, code: str) -> None:
        """Type code into the page's Python."""
        ast.parse(code)  # a SyntaxError is named here, with its line
        if self._python is None:
            requests, answers = self._pipe(), self._pipe()
            (self._pipes / "prompt").write_text(_PROMPT)
            self._say(f'python3 -c "$(cat {self._pipes / "prompt"})" {requests} {answers} > /dev/null & echo')
            self._python = open(requests, "w"), open(answers)  # noqa: SIM115 - they stay open for the page
        ask, hear = self._python
        print(json.dumps(code), file=ask, flush=True)
        answer = hear.readline()
        assert answer, "Python has ended"
        assert json.loads(answer) == "", json.loads(answer)

    def type(self, command: Command) -> None:
        if command.typed.startswith(self.not_here):
            return
        self.typed += 1
        if command.goes_on:
            self._in_another_terminal(command)
            return
        code, said = self.answer(command.typed)
        assert code == command.code, f"{command.typed!r} ends with {code}:\n{said}"
        assert "Traceback" not in said, said
        for line in command.answer:
            assert _pattern(line).search(said) is not None, f"{command.typed!r} does not say {line!r}, but:\n{said}"

    def answer(self, typed: str) -> tuple[int, str]:
        """Type a command into the shell; return its exit code and what it says on both streams."""
        (self._pipes / "typed").write_text(typed + "\n", encoding="utf-8")
        said = self._pipes / "said"
        code = self._say(f". {self._pipes / 'typed'} < /dev/null > {said} 2>&1; echo $?")
        return int(code), said.read_text(encoding="utf-8", errors="replace")

    def _say(self, line: str) -> str:
        assert self._shell.stdin is not None and self._shell.stdout is not None
        print(line, file=self._shell.stdin, flush=True)
        answer = self._shell.stdout.readline()
        assert answer, f"the shell has ended at {line!r}"
        return answer.strip()

    def _in_another_terminal(self, command: Command) -> None:
        """Type a command that goes on; it has said all that the page shows when this returns, and at least one line."""
        pipe = self._pipe()
        (self._pipes / "typed").write_text(f"exec {command.typed}\n", encoding="utf-8")
        typed = shutil.copy(self._pipes / "typed", f"{pipe}.sh")
        pid = self._say(f"bash --noprofile --norc {typed} < /dev/null > {pipe} 2>&1 & echo $!")
        output = open(pipe, encoding="utf-8", errors="replace")  # noqa: SIM115 - it stays open for the page
        self._beside.append((pid, command.typed, output))
        said = output.readline()
        assert said, f"{command.typed!r} ends at once"
        for line in command.answer:
            while _pattern(line).search(said) is None:
                more = output.readline()
                assert more, f"{command.typed!r} ends without saying {line!r}:\n{said}"
                said += more

    def _end(self, pid: str, output: IO[str]) -> int:
        """End what goes on as Ctrl-C or a platform does."""
        self._say(f"kill -TERM {pid}; echo")
        output.read()
        output.close()
        return int(self._say(f"wait {pid}; echo $?"))

    def _pipe(self) -> str:
        path = self._pipes / f"pipe-{len(list(self._pipes.iterdir()))}"
        os.mkfifo(path)
        return str(path)


def _pattern(line: str) -> re.Pattern[str]:
    """What a shown line looks for: any width of spaces is as good as one, and ``…`` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in re.split(r"\s*…\s*", line.strip()))
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", pattern))


def file_name(block: Block) -> str | None:
    """The name of the file that a block shows, if it shows one."""
    first = block.text.partition("\n")[0]
    if block.kind in ("python", "toml", "yaml"):
        found = re.fullmatch(r"# ([\w./-]+\.(?:py|toml|ya?ml))", first)
    else:
        found = re.fullmatch(r"([\w./-]+\.(?:csv|jsonl|json)):", first)
    return found[1] if found is not None else None
