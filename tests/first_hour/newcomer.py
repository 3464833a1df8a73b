"""A newcomer: somebody with nothing but the built wheels, a fresh environment and an empty directory."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

from tests.wheels import installed


class Beside:
    """A process that goes on, like ``quire up`` in another terminal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.told = ""

    def until(self, words: str) -> str:
        """Read what it says until these words come, and return their line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told += line
            if words in line:
                return line
        raise AssertionError(f"it ended without saying {words!r}:\n{self.told}")

    def kill(self) -> None:
        """``kill -9``: it gets no chance to tidy up."""
        self.end(signal.SIGKILL)

    def stop(self) -> int:
        """``kill -TERM``, as a platform ends a process."""
        return self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> int:
        if self.process.returncode is None:
            self.process.send_signal(how)
            self.told += self.process.communicate()[0]
        return self.process.returncode


class Newcomer:
    """Types commands into a shell, in a directory of their own; only the fresh environment is on the path."""

    def __init__(self, environment: Path, home: Path) -> None:
        self.home = home
        self.environ = installed(environment, home)
        self._beside: list[Beside] = []

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.home / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        (self.home / name).write_text(text.replace(old, new), encoding="utf-8")

    def type(self, command: str, code: int = 0) -> str:
        """Type a command; return what it says on both streams. No traceback is ever shown."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        told = done.stdout + done.stderr
        assert done.returncode == code, f"{command!r} ends with {done.returncode}:\n{told}"
        assert "Traceback" not in told, told
        return told

    def tells(self, command: str, *words: str, code: int = 0) -> str:
        """Type a command that says all of these; spaces and line breaks are not compared."""
        told = self.type(command, code)
        plain = re.sub(r"\s+", " ", told)
        for word in words:
            assert re.sub(r"\s+", " ", word) in plain, f"{command!r} does not tell {word!r}, but:\n{told}"
        return told

    def beside(self, command: str) -> Beside:
        """Type a command that goes on. No other process is started by the shell, so that a signal reaches it."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._beside.append(Beside(process))
        return self._beside[-1]

    def leave(self) -> None:
        """End what still goes on."""
        for beside in self._beside:
            beside.kill()
        shutil.rmtree(self.home, ignore_errors=True)
