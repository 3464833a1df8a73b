"""Files that the user names and a command writes: never one that the project itself lives on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from quire.errors import InputError
from quire.ledger.finding import sqlite_path
from quire.surfaces.cli.command import Session
from quire.surfaces.config import FILE


def check_target(session: Session, target: str, sources: Sequence[str] = ()) -> None:
    """Refuse a file that would be lost if it were written: of the ledger, of the configuration, of the flows.

    ``sources``: what else this command reads.
    """
    wanted = Path(target)
    for path, what in _precious(session, sources):
        if _same(wanted, path):
            raise InputError(f"{target!r} is {what}, which this would overwrite; name another file")


def write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path!r} cannot be written: {error}") from error


def _precious(session: Session, sources: Sequence[str]) -> Iterator[tuple[Path, str]]:
    from quire.surfaces.cli.run.up import flow_files

    config = session.config
    ledger = sqlite_path(config.ledger)
    if ledger:
        # SQLite names its files after the file itself, not after a link to it.
        for path in {Path(ledger), Path(ledger).resolve()}:
            yield path, "the ledger"
            for ending in ("-wal", "-shm", "-journal"):
                yield path.with_name(path.name + ending), "a part of the ledger"
    for path in {config.path or config.base / FILE, config.base / FILE}:
        yield path, "the configuration"
    for file in [*flow_files(session, []), *sources]:
        yield Path(file), "a flow file"


def _same(one: Path, other: Path) -> bool:
    """Return whether both name one file, also by another spelling, a link, or before it is there."""
    try:
        return one.resolve() == other.resolve() or one.samefile(other)
    except (OSError, RuntimeError):  # one of them is not there, or a link leads to itself
        return False
