"""What people see on a terminal of each width, in a pipe, and without colour: through a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from quire.surfaces.cli import layout

WIDTHS = (60, 80, 120, 200)
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

FLOWS = """
from quire import Act, Run, Workflow, effect

office = Workflow("office_of_letters")


@effect
async def send_by_post(act: Act, to: str, text: str) -> str:
    return f"sent to {to} with the number {act.key}"


@office.step(then="sign")
async def write(run: Run) -> None:
    await run.once(send_by_post, "客户服务中心" * 6, "dear all, " * 30)
    run.data["letter"] = "A sentence of quite ordinary words that goes on for longer than one line. " * 4


@office.step
async def sign(run: Run) -> None:
    await run.ask("Shall this letter be signed, although it is rather long and nobody has read it to its end?",
                  show=run.data["letter"])
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one record that has done an effect and asks a person."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "flows.py").write_text(FLOWS)
    (folder / "quire.toml").write_text('ledger = "sqlite:///ledger.db"\nflows = ["flows.py"]\n')
    for words in (["start", "office_of_letters", "--id", "letter_to_all_2026"], ["worker", "--until-idle"]):
        done = subprocess.run([*_QUIRE, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    return folder


_QUIRE = [sys.executable, "-m", "quire.surfaces.cli"]


def on_a_terminal(folder: Path, width: int, *words: str, **environment: str) -> list[str]:
    """Run a command on a real terminal of this width. Return the lines that a person sees, without their colours."""
    lines = on_a_terminal_raw(folder, width, *words, **environment)
    return [_STYLE.sub("", line) for line in lines]


def on_a_terminal_raw(folder: Path, width: int, *words: str, **environment: str) -> list[str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*_QUIRE, *words],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env | {"TERM": "xterm"} | environment,
    )
    os.close(theirs)
    seen = b""
    try:
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says that the other end is closed in this way
                break
            if not part:
                break
            seen += part
    finally:
        os.close(ours)
        assert process.wait(60) == 0, seen
    return seen.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words", [("show", "letter_to_all_2026"), ("list",), ("why", "letter_to_all_2026")], ids=" ".join
)
def test_no_line_is_wider_than_the_terminal_and_no_word_of_prose_is_broken(
    desk: Path, width: int, words: tuple[str, ...]
) -> None:
    lines = on_a_terminal(desk, width, *words)
    whole = " ".join(" ".join(lines).split())

    assert "letter_to_all_2026" in whole
    assert [line for line in lines if layout.cells(line) > width and " " in line.strip()] == []
    if words[0] == "show":
        assert "Shall this letter be signed, although it is rather long" in whole
        assert "A sentence of quite ordinary words that goes on for longer than one line. A sentence" in whole
        assert "send_by_post" in whole


def test_a_column_that_has_no_room_is_named(desk: Path) -> None:
    assert "no room here for next_step, workflow, updated_at" in " ".join(on_a_terminal(desk, 60, "list"))
    assert "no room here" not in " ".join(on_a_terminal(desk, 200, "list"))


def test_a_terminal_that_is_narrower_than_an_id_shows_a_block_for_each_record(desk: Path) -> None:
    lines = on_a_terminal(desk, 30, "list")
    assert lines[0].split() == ["record_id", "letter_to_all_2026"]
    assert lines[1].split() == ["status", "NEEDS_APPROVAL"]


def test_a_pipe_gets_whole_lines_without_colour(desk: Path) -> None:
    show = subprocess.run([*_QUIRE, "show", "letter_to_all_2026"], cwd=desk, capture_output=True, text=True, check=True)
    assert "\x1b" not in show.stdout
    assert any(len(line) > 250 for line in show.stdout.splitlines())


def test_colour_is_left_out_where_somebody_asks_for_none(desk: Path) -> None:
    assert any("\x1b[" in line for line in on_a_terminal_raw(desk, 80, "list"))
    plain = on_a_terminal_raw(desk, 80, "list", NO_COLOR="1")
    assert [line for line in plain if re.search(r"\x1b\[[0-9;]*3[0-9]", line)] == []


@pytest.mark.parametrize(
    ("text", "width", "hang", "lines"),
    [
        ("one two three", 40, 0, ["one two three"]),
        ("one two three four five six", 24, 4, ["one two three four five", "    six"]),
        ("  kept   spaces  in the first line and more", 30, 2, ["  kept   spaces  in the first", "  line and more"]),
        (
            "see https://example.org/a/very/long/address now",
            24,
            0,
            ["see", "https://example.org/a/very/long/address", "now"],
        ),
        ("客户服务中心客户服务中心", 20, 0, ["客户服务中心客户服务", "中心"]),
        ("", 20, 0, [""]),
    ],
)
def test_lines_are_broken_between_words(text: str, width: int, hang: int, lines: list[str]) -> None:
    assert layout.wrapped(text, width, hang) == lines


def test_a_wide_character_takes_two_cells() -> None:
    assert layout.cells("客户") == 4
    assert layout.shortened("客户服务", 5) == "客户…"
    assert layout.padded("客户", 6) == "客户  "
