"""Sign-ins that are kept on this machine: one file for each account, in the user's folder, readable by that user only.

They stand nowhere else: not in the ledger, not in the folder of files for people, not in logs, not in the settings.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quire.errors import NotFound
from quire.google.error import NotSignedIn

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class SignIn:
    """What makes access tokens of a person who signed in."""

    account: str
    client_id: str
    client_secret: str
    refresh_token: str
    token_uri: str
    scopes: tuple[str, ...]
    #: Where the person signed in, if it was an emulator; empty: Google.
    endpoint: str
    made_at: float
    #: When Google ends it; None: Google named no end.
    ends_at: float | None
    project: str = ""

    def __repr__(self) -> str:
        return f"<the sign-in of {self.account}>"

    @property
    def info(self) -> dict[str, Any]:
        """The form that google-auth reads."""
        names = ("client_id", "client_secret", "refresh_token", "account")
        return {"type": "authorized_user", **{name: getattr(self, name) for name in names}}

    def days_left(self, now: float) -> float | None:
        return None if self.ends_at is None else (self.ends_at - now) / DAY


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's own folder for settings, below which sign-ins are kept."""
    if given := environ.get("XDG_CONFIG_HOME"):
        base = Path(given)
    elif sys.platform == "win32":
        base = Path(environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".config"
    return base / "quire" / "google"


def path_of(account: str) -> Path:
    return folder() / f"{quote(account, safe='@+')}.json"


def keep(made: SignIn) -> Path:
    """Write a sign-in, in place of an earlier one of the account."""
    path = path_of(made.account)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(made), file, indent=1)
    beside.replace(path)
    return path


def forget(account: str) -> None:
    """Delete what is kept of an account."""
    path = path_of(account)
    if not path.is_file():
        raise NotFound(f"no sign-in of {account!r} is kept here; {known()}")
    path.unlink()


def accounts() -> list[str]:
    """Return the accounts whose sign-ins are kept."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            found.append(str(json.loads(path.read_text(encoding="utf-8"))["account"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def known() -> str:
    """Say whose sign-ins there are."""
    return f"kept are those of {', '.join(found)}" if (found := accounts()) else "none is kept"


def read(account: str) -> SignIn:
    """Read the sign-in of an account. Without a name it is the only one there is."""
    if not account:
        found = accounts()
        if len(found) != 1:
            many = f"several accounts are connected ({', '.join(found)}); name one: account = … under [google]"
            raise NotSignedIn(many if found else "nobody is connected; run 'quire connect'")
        account = found[0]
    path = path_of(account)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        made = SignIn(**{**given, "scopes": tuple(given["scopes"])})
    except FileNotFoundError as error:
        raise NotSignedIn(f"{account} has not signed in on this machine; run 'quire connect' ({known()})") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotSignedIn(f"{str(path)!r} cannot be read ({error}); run 'quire connect' again") from error
    if sys.platform != "win32" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise NotSignedIn(f"others can read {str(path)!r}; run: chmod 600 {str(path)!r}")
    return made
