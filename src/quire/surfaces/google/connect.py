"""``quire connect``: sign in to Google with what the flows need, and try it."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from quire.clock import SYSTEM
from quire.errors import InputError, QuireError
from quire.google import kept
from quire.google.consent import WHO, App, Consent, Granted, app_of
from quire.google.credentials import ADC, IMPERSONATE, USER, Credentials, StaticToken, client_id_of, of_sign_in
from quire.google.error import NotSignedIn
from quire.google.kept import SignIn
from quire.google.transport import Transport
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.google import project, words
from quire.workspace import accounts
from quire.workspace.accounts import Account
from quire.workspace.connection import Google
from quire.workspace.scopes import full
from quire.workspace.trying import Tried, try_scopes, who_is
from quire.workspace.uses import DRAFT, SEND_ONLY, Uses, short, widened


class Wish(NamedTuple):
    """What was typed, over what is configured."""

    account: Account
    uses: Uses
    #: Full names.
    scopes: tuple[str, ...]
    client: str
    port: int
    browser: bool


@verb(
    "connect",
    example="""
    quire connect
    quire connect --no-browser --port 8400
    quire connect --add calendar
    quire connect --credentials robot.json --subject bot@example.org
    """,
)
@click.argument("name", default="", metavar="[NAME]")
@click.option("--account", default="", metavar="EMAIL", help="Who must sign in.")
@click.option("--client", default="", metavar="FILE", help="Your OAuth client (Desktop app); else credentials.json.")
@click.option("--no-browser", is_flag=True, help="Print the link instead of opening it.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port that the sign-in comes back to.")
@click.option("--add", "more", multiple=True, metavar="WORD", help="Also this product, act or scope; repeatable.")
@click.option("--mail", type=click.Choice([DRAFT, SEND_ONLY]), help="send-only: no restricted scope for mail.")
@click.option("--credentials", "how", default="", metavar="HOW", help="user, adc, impersonate:ROBOT, or a key file.")
@click.option("--subject", default="", metavar="EMAIL", help="As whom a service account acts.")
@click.option("--forget", is_flag=True, help="Delete the sign-in that is kept of --account.")
def connect(
    session: Session,
    name: str,
    account: str,
    client: str,
    no_browser: bool,
    port: int,
    more: Sequence[str],
    mail: str | None,
    how: str,
    subject: str,
    forget: bool,
) -> int:
    """Sign in to Google with the fewest permissions that the flows need, and try each of them.

    NAME is a connection of its own, like [google.support] in quire.toml. What is kept of a sign-in lies in one file of
    your user, which nobody else can read. Exit code 3 if a permission is missing.
    """
    if forget:
        return _forget(session, account or project.account_of(session.config, name).account)
    found = project.account_of(session.config, name)
    typed = {"account": account, "mail": mail, "credentials": how, "subject": subject}
    found = replace(found, **{word: value for word, value in typed.items() if value})
    if subject and found.how in (USER, ADC):
        raise InputError(
            "--subject goes with a service account: --credentials FILE, or --credentials impersonate:ROBOT"
        )
    uses = project.uses(session, mail=found.mail)
    scopes = tuple(dict.fromkeys(map(full, (*uses.scopes, *widened(more, mail=found.mail)))))
    if not scopes:
        raise InputError(
            "the flows use nothing of Google; name what you want with --add, like: quire connect --add gmail"
        )
    wish = Wish(found, uses, scopes, client, port, not no_browser)
    if found.how != USER:
        _say_needs(session, wish)
        return _machine(session, wish)
    app = _app(session, wish)
    _say_needs(session, wish)
    return _person(session, wish, app)


def _forget(session: Session, account: str) -> int:
    who = kept.read(account).account
    kept.forget(who)
    session.out.acted(f"the sign-in of {who} is deleted from this machine", who, forgotten=who)
    return Exit.OK


def _say_needs(session: Session, wish: Wish) -> None:
    out = session.out
    for line in words.used(wish.uses):
        out.say(f"flows   {line}")
    names = [short(scope) for scope in wish.scopes]
    out.say(f"needs   {words.listed(names)}")
    if "gmail.compose" in names and wish.account.mail == DRAFT:
        out.say(f"        {words.SEND_ONLY}", dim=True)


# -- a person ------------------------------------------------------------------------------------------------------


def _person(session: Session, wish: Wish, app: App) -> int:
    out = session.out
    out.say(f"client  desktop app{f', project {app.project}' if app.project else ''}")
    out.say(f"enable  {words.enabling(wish.uses.apis or words.hosts_of(map(short, wish.scopes)), app.project)}")
    with Consent(app, wish.scopes, hint=wish.account.account, port=wish.port) as consent:
        if wish.browser:
            out.say(f"open    {consent.address}")
            webbrowser.open(consent.address)
        else:
            out.say(f"        {words.NO_BROWSER.format(port=consent.port, host=socket.gethostname())}")
            click.echo(consent.address, err=session.json)
        granted = consent.wait()
    made = session.run(_signed_in(wish, app, granted))
    path = kept.keep(made)
    scopes = [short(scope) for scope in made.scopes if scope not in WHO]
    out.say(f"granted {len(scopes)} as {made.account}: {words.listed(scopes)}")
    out.say(f"kept    {path} (mode 600)")
    if made.ends_at is not None:
        out.say(f"        {words.SEVEN_DAYS}", colour="yellow")
    missing = [short(scope) for scope in wish.scopes if scope not in made.scopes]
    if missing:
        out.say(f"missing {words.unticked(missing, wish.uses)}", colour="red")
    tried = session.run(_tried(of_sign_in(made), made.endpoint, wish, set(wish.scopes) & set(made.scopes)))
    return _ended(session, wish, made.account, missing, tried)


def _app(session: Session, wish: Wish) -> App:
    """The client file that was named, or lies where it is looked for, or the client of the earlier sign-in."""
    if wish.client:
        return app_of(wish.client)
    for folder in (session.config.base, Path.cwd()):
        found = [folder / "credentials.json", *sorted(folder.glob("client_secret*.json"))]
        for path in found:
            if path.is_file():
                return app_of(path)
    if wish.account.account in (known := kept.accounts()) or (not wish.account.account and len(known) == 1):
        before = kept.read(wish.account.account)
        auth = f"{before.endpoint.rstrip('/')}/o/oauth2/auth" if before.endpoint else ""
        google = "https://accounts.google.com/o/oauth2/auth"
        return App(before.client_id, before.client_secret, auth or google, before.token_uri, before.project)
    raise InputError(words.NO_CLIENT)


async def _signed_in(wish: Wish, app: App, granted: Granted) -> SignIn:
    """Who signed in, and all that is kept. Another account than the one that is named is refused."""
    parts = urlsplit(app.token_uri)
    endpoint = f"{parts.scheme}://{parts.netloc}/" if parts.hostname in ("127.0.0.1", "localhost") else ""
    if not granted.refresh_token:
        raise NotSignedIn("Google gave no refresh token; remove the app under myaccount.google.com, and connect again")
    async with _open(StaticToken(granted.access_token), endpoint, wish.account.mail) as google:
        who = await who_is(google)
    if not who:
        raise NotSignedIn("Google does not say who signed in; nothing was kept. Connect again and leave 'email' ticked")
    try:
        accounts.check(wish.account, who)
    except NotSignedIn as error:
        raise NotSignedIn(f"{error}. Nothing was kept") from error
    now = SYSTEM.now()
    ends = None if granted.ends_in is None else now + granted.ends_in
    return SignIn(
        who, app.client_id, app.client_secret, granted.refresh_token, app.token_uri,
        tuple(sorted(granted.scopes)), endpoint, now, ends, app.project,
    )  # fmt: skip


class _open:  # noqa: N801 - a context manager
    """One connection for a few calls."""

    def __init__(self, credentials: Credentials, endpoint: str, mail: str) -> None:
        self._google = Google(Transport(credentials, endpoint=endpoint, per_minute=None), mail)

    async def __aenter__(self) -> Google:
        await self._google.transport.open()
        return self._google

    async def __aexit__(self, *exc: object) -> None:
        await self._google.transport.close()


async def _tried(credentials: Credentials, endpoint: str, wish: Wish, scopes: set[str]) -> list[Tried]:
    async with _open(credentials, endpoint, wish.account.mail) as google:
        return await try_scopes(google, [scope for scope in wish.scopes if scope in scopes])


# -- a machine -----------------------------------------------------------------------------------------------------


def _machine(session: Session, wish: Wish) -> int:
    """A service account, the machine's own identity, or both: nothing is kept, each scope is tried."""
    account, out = wish.account, session.out
    out.say(f"client  {_title(account)}")
    out.say(f"enable  {words.enabling(wish.uses.apis or words.hosts_of(map(short, wish.scopes)))}")
    commas = ",".join(wish.scopes)
    if account.subject:
        out.say(f"        {words.DELEGATION}")
        out.say(f"        client id {client_id_of(account.how) or '(see the service account)'}, scopes {commas}")
    elif account.how == ADC:
        out.say(f"        {words.GCLOUD.format(scopes=commas)}", dim=True)
    else:
        out.say(f"        {words.ROBOT}", dim=True)
    if account.how.startswith(IMPERSONATE):
        out.say(f"        {words.NO_KEYS}", dim=True)
    credentials = accounts.opened(account, [*WHO[1:], *wish.scopes])

    async def tried() -> tuple[str, list[Tried]]:
        async with _open(credentials, account.endpoint, account.mail) as google:
            await credentials.headers()
            who = credentials.account or await who_is(google)
            accounts.check(account, who)
            return who, await try_scopes(google, wish.scopes)

    who, found = session.run(tried())
    out.say(f"granted as {who}")
    return _ended(session, wish, who, [], found)


def _title(account: Account) -> str:
    if account.how == ADC:
        return "the machine's own credentials (ADC)"
    acts = f", acting as {account.subject}" if account.subject else ""
    return f"{account.how}{acts}"


def _ended(session: Session, wish: Wish, who: str, missing: Sequence[str], tried: Sequence[Tried]) -> int:
    """Say what the tries came to, and what to write into quire.toml."""
    out = session.out
    for one in tried:
        out.say(
            f"checked {'✓' if one.state == 'well' else '✗'} {one.text}",
            colour="green" if one.state == "well" else "red",
        )
    bad = [*missing, *(one.name for one in tried if one.state == "problem")]
    asked = [short(scope) for scope in wish.scopes]
    if session.json:
        out.emit({"account": who, "asked": asked, "missing": list(missing), "tried": [one._asdict() for one in tried]})
    try:
        written = project.accounts_of(session.config).get(wish.account.name)
    except QuireError:
        written = None
    if written is None:
        out.say(f"write   {wish.account.title}   # into quire.toml, so that nobody else is taken for it")
        out.say(f'        account = "{who}"')
        for word in ("credentials", "subject", "mail"):
            if (value := getattr(wish.account, word)) not in ("", DRAFT):
                out.say(f'        {word} = "{value}"')
    return Exit.REFUSED if bad else Exit.OK
