"""What all commands have in common: their options, the session they run in, their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from quire.client.client import Client
    from quire.surfaces.cli.output import Output
    from quire.surfaces.config import Config
    from quire.workflows.workflow import Workflow

T = TypeVar("T")

#: A person waits so long for a ledger that does not answer; `patience` says otherwise.
COMMAND_PATIENCE = "10s"


class Exit(IntEnum):
    """How a command ends, for scripts."""

    OK = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    REFUSED = 3
    NOT_FOUND = 4
    ERROR = 5
    CANCELLED = 6
    NEEDS_PERSON = 7
    INTERRUPTED = 130


@dataclass
class Session:
    """One call of the command line."""

    json: bool = False
    debug: bool = False
    flags: dict[str, Any] = field(default_factory=dict)
    file: str | None = None
    _config: Config | None = None
    _output: Output | None = None

    @property
    def config(self) -> Config:
        if self._config is None:
            from quire.surfaces.config import load

            self._config = load(self.flags, file=self.file)
        return self._config

    def forget_config(self) -> None:
        """Read the configuration anew when it is asked for: its file has changed."""
        self._config = None

    @property
    def out(self) -> Output:
        if self._output is None:
            from quire.surfaces.cli.output import Output

            self._output = Output(json=self.json)
        return self._output

    def client(
        self,
        *,
        make: bool = False,
        workflows: Iterable[Workflow[Any, Any, Any]] = (),
        deps: Any = None,
        works: bool = False,
    ) -> Client:
        """Return a client of the configured ledger. Only with ``make`` is a ledger made that is not there yet.

        ``works``: the process goes on and works, so it waits longer for a ledger that does not answer than a person.
        """
        from quire.client.client import Client
        from quire.clock import seconds
        from quire.errors import NotFound
        from quire.ledger.finding import sqlite_path
        from quire.surfaces.config import ledger_there

        config = self.config
        if not ledger_there(config.ledger) and not make:
            path = sqlite_path(config.ledger)
            raise NotFound(f"there is no ledger at {path!r} yet; 'quire up' makes it, 'quire config' says who named it")
        client = Client(
            config.ledger,
            workflows=workflows,
            deps=deps,
            public_url=config.public_url,
            who=config.who,
            groups=config.groups,
            state=config.state,
            retention=config.retention or None,
        )
        if config.patience or not works:
            client.ledger.patience = seconds(config.patience or COMMAND_PATIENCE)
        return client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        import asyncio

        return asyncio.run(work)

    def with_client(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Open the ledger, do this, close it."""

        async def inside() -> T:
            async with self.client() as client:
                return await work(client)

        return self.run(inside())


def _kept(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    session = ctx.find_root().obj
    if value in (None, False, ()) or not isinstance(session, Session):
        return value
    match param.name:
        case "json":
            session.json = True
        case "debug":
            session.debug = True
        case "file":
            session.file = value
        case str(name):
            session.flags[name] = value
    return value


def _common(*names: str, **options: Any) -> click.Option:
    return click.Option(list(names), expose_value=False, callback=_kept, **options)


#: Options that every command takes, before or after its name.
COMMON: list[click.Parameter] = [
    _common("--json", is_flag=True, help="One JSON object a line; errors too, on stderr."),
    _common("--ledger", metavar="URL", help="The ledger, instead of the configured one."),
    _common("--config", "file", metavar="FILE", help="The configuration file, instead of the nearest quire.toml."),
    _common("--as", "who", metavar="NAME", help="Who acts, for the log."),
    _common("--debug", is_flag=True, help="Show the details of an unexpected error."),
]


class Verb(click.Command):
    """A command with the common options, and its example at the end of its help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.own = list(self.params)
        self.params = [*self.params, *COMMON]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = (param for param in self.own if isinstance(param, click.Option))
        own = [row for param in options if (row := param.get_help_record(ctx)) is not None]
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Common options"):
            help_option = self.get_help_option(ctx)
            rows = [param.get_help_record(ctx) for param in (*COMMON, *([help_option] if help_option else []))]
            formatter.write_dl([row for row in rows if row is not None])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.example:
            with formatter.section("Example"):
                for line in self.example.strip().splitlines():
                    formatter.write(f"  {line.strip()}\n")


def verb(name: str, *, example: str) -> Callable[[Callable[..., Any]], Verb]:
    """Declare a command. Its function takes the session first; what it returns is the exit code, or None."""

    def declare(function: Callable[..., Any]) -> Verb:
        made = click.command(name, cls=Verb, example=example)(click.pass_obj(function))
        assert isinstance(made, Verb)
        return made

    return declare


def named(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse an empty name: ``quire halt "$WORKFLOW"`` with the variable unset must not mean all of them."""
    given = ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    if value == "" and given:
        raise click.BadParameter("it is empty; leave it out to mean all of them", ctx, param)
    return value


def workflow_option(function: Callable[..., Any]) -> Callable[..., Any]:
    from quire.surfaces.cli.completing import workflows

    return click.option(
        "--workflow",
        "-w",
        default="",
        metavar="NAME",
        callback=named,
        shell_complete=workflows,
        help="Of this workflow.",
    )(function)


def record_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    from quire.surfaces.cli.completing import records

    return click.argument("record_id", metavar="ID", shell_complete=records)(function)
