"""What a project says about Google: its connections, and what its flows need."""

from __future__ import annotations

from quire.google.credentials import USER
from quire.surfaces.cli.command import Session
from quire.surfaces.config import Config
from quire.workspace import accounts
from quire.workspace.accounts import Account
from quire.workspace.scopes import full
from quire.workspace.uses import Uses, uses_of


def accounts_of(config: Config) -> dict[str, Account]:
    """The connections that ``quire.toml`` names."""
    return accounts.read(config.google, config.base)


def account_of(config: Config, name: str) -> Account:
    """The connection of this name; the usual one need not be written."""
    return accounts_of(config).get(name) or Account(name)


def uses(session: Session, *, mail: str = "") -> Uses:
    """Read what the flows of this project use of Google."""
    from quire.surfaces.cli.flows import load_flows
    from quire.surfaces.cli.run.up import flow_files

    config = session.config
    files = flow_files(session, ())
    in_sheet = config.ledger.startswith("sheets:") or config.panel.startswith("sheets:")
    return uses_of(load_flows(files) if files else (), mail=mail or account_of(config, "").mail, sheet=in_sheet)


def declare(session: Session) -> None:
    """Make the connections of the project known to this process."""
    found = accounts_of(session.config)
    if any(account.how != USER for account in found.values()):
        accounts.declare(found, [full(scope) for scope in uses(session).scopes])
    else:
        accounts.declare(found)
