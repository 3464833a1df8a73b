"""The connections to Google that ``quire.toml`` names: ``[google]`` is the usual one, ``[google.support]`` another.

They are declared when a process begins, and opened when an act needs them. A sign-in that is made anew meanwhile counts
at once: its file is looked at before each use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from quire.errors import InputError, did_you_mean
from quire.google import kept
from quire.google.credentials import ADC, IMPERSONATE, USER, Credentials, StaticToken, chosen
from quire.google.error import NotSignedIn

DRAFT, SEND_ONLY = "draft", "send-only"


@dataclass(frozen=True, slots=True)
class Account:
    """One connection, as it is configured."""

    #: What ``effect.using(name)`` calls it; empty: the usual one.
    name: str = ""
    #: Who must be signed in; another one does nothing.
    account: str = ""
    #: ``user``, ``adc``, ``impersonate:ROBOT`` or the path of a file.
    credentials: str = ""
    #: As whom a service account acts.
    subject: str = ""
    #: ``draft``: mail leaves as a draft that is sent. ``send-only``: the account may send and do nothing else.
    mail: str = DRAFT
    #: The house: mail and invitations to others leave it.
    domain: str = ""
    #: The project whose quota counts, for the machine's own identity.
    quota_project: str = ""
    #: An emulator, in place of Google.
    endpoint: str = ""

    @property
    def title(self) -> str:
        return f"[google.{self.name}]" if self.name else "[google]"

    @property
    def how(self) -> str:
        """How it signs in."""
        return self.credentials or USER


#: What may stand in the table.
WORDS = tuple(field.name for field in fields(Account) if field.name != "name")


def read(table: Mapping[str, Any], base: Path = Path()) -> dict[str, Account]:
    """Read the table ``[google]``, with its tables for named connections. ``base``: what paths are relative to."""
    own = {word: value for word, value in table.items() if not isinstance(value, dict)}
    named = {word: value for word, value in table.items() if isinstance(value, dict)}
    found = {"": _account("", own, base)} if own else {}
    return found | {name: _account(name, given, base) for name, given in named.items()}


def _account(name: str, given: Mapping[str, Any], base: Path) -> Account:
    title = f"[google.{name}]" if name else "[google]"
    for word, value in given.items():
        if word not in WORDS:
            raise InputError(f"{title}: there is no key {word!r}{did_you_mean(word, WORDS)}")
        if not isinstance(value, str):
            raise InputError(f"{title}: {word!r} must be a text, not {value!r:.80}")
    made = Account(name, **given)
    if made.mail not in (DRAFT, SEND_ONLY):
        raise InputError(f"{title}: mail must be {DRAFT!r} or {SEND_ONLY!r}, not {made.mail!r}")
    if made.subject and made.how in (USER, ADC):
        raise InputError(f"{title}: subject goes with a service account: a key file, or {IMPERSONATE}ROBOT")
    if made.how in (USER, ADC) or made.how.startswith(IMPERSONATE):
        return made
    return Account(name, **{**given, "credentials": str(base / Path(made.credentials).expanduser())})


_declared: dict[str, Account] = {}
_scopes: tuple[str, ...] = ()
_opened: dict[str, tuple[float, Credentials]] = {}


def declare(accounts: Mapping[str, Account], scopes: Sequence[str] = ()) -> None:
    """Say which connections this process has. ``scopes``: what a service account asks for."""
    global _scopes
    _declared.clear()
    _opened.clear()
    _declared.update(accounts)
    _scopes = tuple(scopes)


def names() -> list[str]:
    """The names of the connections that are declared, without the usual one."""
    return sorted(name for name in _declared if name)


def declared(name: str) -> Account | None:
    """Return the connection of this name; for the usual one also that of the only person who is signed in here."""
    if name in _declared:
        return _declared[name]
    return Account() if not name and kept.accounts() else None


def credentials_of(account: Account, scopes: Sequence[str] = ()) -> Credentials:
    """Return what proves who the connection is. Refuses a person who is not the one that is named."""
    changed = _changed(account)
    if account.name in _opened and _opened[account.name][0] == changed:
        return _opened[account.name][1]
    made = opened(account, scopes or _scopes)
    _opened[account.name] = (changed, made)
    return made


def opened(account: Account, scopes: Sequence[str]) -> Credentials:
    """The same, made anew."""
    if account.endpoint and not account.credentials:
        return StaticToken(account.account or "me")
    made = chosen(
        account.how,
        scopes,
        account=account.account,
        subject=account.subject,
        endpoint=account.endpoint,
        quota_project=account.quota_project,
    )
    check(account, made.account)
    return made


def endpoint_of(account: Account) -> str:
    """Where the connection leads: an emulator, or empty for Google. A sign-in knows where it was made."""
    if account.endpoint or account.how != USER:
        return account.endpoint
    return kept.read(account.account).endpoint


def check(account: Account, who: str) -> None:
    """Refuse another account than the one that is named."""
    if account.account and who and account.account.lower() != who.lower():
        raise NotSignedIn(
            f"{who} is signed in, and {account.title} names {account.account}; nothing is done. Sign in as "
            f"{account.account} (quire connect), or correct quire.toml"
        )


def _changed(account: Account) -> float:
    """When the file with the credentials was written."""
    how = account.how
    if how == ADC or how.startswith(IMPERSONATE) or (account.endpoint and not account.credentials):
        return 0.0
    who = account.account or next(iter(kept.accounts()), "")
    try:
        return (kept.path_of(who) if how == USER else Path(how)).stat().st_mtime
    except OSError:
        return -1.0
