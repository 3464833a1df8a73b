"""``quire doctor --google``: who is signed in, what is granted, and each act of the flows tried without a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quire.clock import SYSTEM
from quire.errors import QuireError
from quire.google import kept
from quire.google.credentials import USER, Credentials
from quire.google.error import GoogleError
from quire.google.transport import Transport
from quire.surfaces.cli.command import Exit, Session
from quire.surfaces.google import project, words
from quire.surfaces.google.sweep import swept
from quire.workspace import accounts
from quire.workspace.accounts import Account
from quire.workspace.connection import Google, usual
from quire.workspace.scopes import full
from quire.workspace.trying import Tried, try_acts, try_questions, try_scopes, who_is
from quire.workspace.uses import Uses, short

#: A sign-in of an app in testing is warned about from its fifth day on.
_WARN_DAYS = 2.0


def examined(session: Session, *, sweep: bool = False) -> int:
    """Try every connection of the project. Exit code 3 if something does not work."""
    uses = project.uses(session)
    named = project.accounts_of(session.config) or {"": Account()}
    found = [Tried("well", line) for line in words.used(uses)]
    for account in named.values():
        found += session.run(_connection(session, account, uses, sweep=sweep))
    for one in found:
        if session.json:
            session.out.emit(one._asdict())
        else:
            mark, colour = {"well": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}[one.state]
            session.out.say(f"{mark} {one.text}", colour=colour)
    bad = sum(one.state == "problem" for one in found)
    session.out.say(f"{len(found)} checks: {f'{bad} problems' if bad else 'no problems'} found")
    return Exit.REFUSED if bad else Exit.OK


async def _connection(session: Session, account: Account, uses: Uses, *, sweep: bool) -> list[Tried]:
    scopes = [full(scope) for scope in uses.scopes]
    found = [*_sign_in(account, scopes)]
    try:
        credentials, endpoint = _way(account, scopes)
    except QuireError as error:
        return [*found, Tried("problem", f"{account.title}: {error}")]
    google = Google(Transport(credentials, endpoint=endpoint, per_minute=None), account.mail)
    await google.transport.open()
    try:
        await google.transport.credentials.headers()
        who = google.transport.credentials.account or await who_is(google)
        accounts.check(account, who)
        found.append(Tried("well", f"{account.title}: signed in as {who}{_at(google)}"))
        found += _robot(who, uses)
        found += await try_scopes(google, scopes)
        found += await try_acts(google, uses.all_acts)
        found += await try_questions(google, scopes)
        if sweep:
            found += await swept(session, google)
    except GoogleError as error:
        found.append(Tried("problem", f"{account.title}: {error}"))
    finally:
        await google.transport.close()
    return found


def _way(account: Account, scopes: Iterable[str]) -> tuple[Credentials, str]:
    """The credentials of a connection, and where it leads."""
    if account == Account() and not kept.accounts():
        way = usual()
        return way.credentials, way.endpoint
    return accounts.opened(account, list(scopes)), accounts.endpoint_of(account)


def _at(google: Google) -> str:
    return f" at {google.transport.endpoint}" if google.transport.endpoint else ""


def _sign_in(account: Account, scopes: Iterable[str]) -> Iterator[Tried]:
    """What is known of a person's sign-in without asking Google."""
    if account.how != USER or account.endpoint:
        return
    try:
        made = kept.read(account.account)
    except GoogleError:
        return  # its opening says so
    if (left := made.days_left(SYSTEM.now())) is not None:
        text = f"the sign-in of {made.account} ends in {max(0.0, left):.1f} days. {words.SEVEN_DAYS}"
        yield Tried("warning" if left < _WARN_DAYS else "well", text)
    missing = [short(scope) for scope in scopes if scope not in made.scopes]
    if missing:
        yield Tried("problem", f"not granted: {', '.join(missing)}; run: quire connect --add {' --add '.join(missing)}")


def _robot(who: str, uses: Uses) -> Iterator[Tried]:
    """Which acts of the flows a service account cannot do."""
    if not who.endswith(".gserviceaccount.com"):
        return
    mail = [act for act in uses.all_acts if act.startswith(("gmail.", "sent.", "Inbound"))]
    files = [act for act in uses.all_acts if act in ("drive.file", "drive.copy", "drive.pdf")]
    if mail:
        yield Tried("problem", f"{who} has no mailbox, so these cannot work: {', '.join(mail)}. {words.DELEGATION}")
    if files:
        yield Tried("warning", f"{who} has no storage: {', '.join(files)} work in a shared drive only")
    if "calendar.event" in uses.all_acts:
        yield Tried("warning", f"{who} cannot invite guests: calendar.event works without invite= only")
