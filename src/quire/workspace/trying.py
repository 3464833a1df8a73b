"""Trying a connection without a trace: one harmless call for each scope, and each kind of act made and taken away.

Nothing here reaches anybody outside: drafts are deleted, events have no guests, files go to the trash.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, NamedTuple

from quire.google.budget import Urgency
from quire.google.error import (
    AlreadyThere,
    ApiDisabled,
    GoogleError,
    Invalid,
    Missing,
    MissingScope,
    NotShared,
)
from quire.workspace.connection import Google
from quire.workspace.scopes import NEEDS
from quire.workspace.uses import SEND_ONLY, api_of, host_of, short

#: Where each API lives; at an emulator all of them live at one place.
_BASES = {
    **dict.fromkeys(("drive", "calendar", "oauth2"), "https://www.googleapis.com/"),
    **{name: f"https://{name}.googleapis.com/" for name in ("docs", "slides", "sheets", "gmail", "chat", "forms")},
    "tasks": "https://tasks.googleapis.com/",
    "pubsub": "https://pubsub.googleapis.com/",
}
_UNKNOWN = "quire-tries-this-connection-000000000000000"
DOC = "application/vnd.google-apps.document"

#: A look that changes nothing, by the beginning of a scope's name. "Not there" is a good answer: it was allowed.
_LOOKS: Mapping[str, tuple[str, str]] = {
    "drive": ("drive", "drive/v3/about?fields=user"),
    "documents": ("docs", f"v1/documents/{_UNKNOWN}"),
    "presentations": ("slides", f"v1/presentations/{_UNKNOWN}"),
    "spreadsheets": ("sheets", f"v4/spreadsheets/{_UNKNOWN}"),
    "gmail.compose": ("gmail", "gmail/v1/users/me/drafts?maxResults=1"),
    "gmail.metadata": ("gmail", "gmail/v1/users/me/profile"),
    "gmail.readonly": ("gmail", "gmail/v1/users/me/profile"),
    "gmail.modify": ("gmail", "gmail/v1/users/me/profile"),
    "calendar": ("calendar", "calendar/v3/calendars/primary/events?maxResults=1"),
    "tasks": ("tasks", "tasks/v1/users/@me/lists?maxResults=1"),
    "forms.responses": ("forms", f"v1/forms/{_UNKNOWN}/responses"),
    "forms.body": ("forms", f"v1/forms/{_UNKNOWN}"),
    "chat.bot": ("chat", "v1/spaces?pageSize=1"),
    "chat.spaces": ("chat", "v1/spaces?pageSize=1"),
}


class Tried(NamedTuple):
    """What came of one try."""

    #: well, warning or problem, as the findings of the doctor.
    state: str
    text: str
    #: The scope, the act or the question.
    name: str = ""


async def ask(
    google: Google, api: str, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Make one call by its path."""
    transport = google.transport
    answer = await transport.call(
        method,
        (transport.endpoint or _BASES[api]) + path,
        what=f"trying {api}",
        urgency=Urgency.VIEW,
        write=method != "GET",
        repeatable=method == "GET",
        deadline=30.0,
        body=body,
        headers=headers,
        metered=False,
    )
    return answer.json if answer.body[:1] == b"{" else {"text": answer.body.decode("utf-8", "replace")}


async def who_is(google: Google) -> str:
    """Return the address of the account that is signed in; empty if Google does not say."""
    try:
        return str((await ask(google, "oauth2", "GET", "oauth2/v3/userinfo")).get("email", ""))
    except GoogleError:
        pass
    try:
        found = await ask(google, "drive", "GET", "drive/v3/about?fields=user")
        return str(found.get("user", {}).get("emailAddress", ""))
    except GoogleError:
        return ""


def disabled(api: str, project: str = "") -> str:
    """How an API is switched on."""
    query = f"?project={project}" if project else ""
    return f"switch it on: https://console.cloud.google.com/apis/library/{host_of(api)}{query}"


async def try_scope(google: Google, scope: str, project: str = "") -> Tried:
    """Make one harmless call with a scope."""
    name = short(scope)
    key = max((key for key in _LOOKS if name == key or name.startswith(f"{key}.")), key=len, default="")
    if not key:
        return Tried("well", f"{name}: there is no call that changes nothing with it, so it was not tried", name)
    api, path = _LOOKS[key]
    try:
        await ask(google, api, "GET", path)
    except (Missing, Invalid):
        pass
    except NotShared as error:
        if _UNKNOWN not in path:
            return Tried("problem", f"{name}: {error}", name)
    except MissingScope:
        return Tried("problem", f"{name}: it is not granted; run: quire connect --add {name}", name)
    except ApiDisabled:
        return Tried("problem", f"{name}: the API {host_of(api)} is switched off; {disabled(api, project)}", name)
    except GoogleError as error:
        return Tried("problem", f"{name}: {error}", name)
    return Tried("well", f"{name}: a harmless call works", name)


async def try_scopes(google: Google, scopes: Iterable[str], project: str = "") -> list[Tried]:
    return [await try_scope(google, scope, project) for scope in scopes]


# -- acts ----------------------------------------------------------------------------------------------------------


async def _file(google: Google) -> str:
    made = await ask(google, "drive", "POST", "drive/v3/files", {"name": "Quire tries this", "mimeType": "text/plain"})
    await _trash(google, made["id"])
    return "a file was made and went to the trash"


async def _trash(google: Google, file_id: str) -> None:
    await ask(google, "drive", "PATCH", f"drive/v3/files/{file_id}", {"trashed": True})


async def _document(google: Google) -> str:
    made = await ask(google, "drive", "POST", "drive/v3/files", {"name": "Quire tries this", "mimeType": DOC})
    try:
        insert = {"insertText": {"location": {"index": 1}, "text": "{{name}}"}}
        await ask(google, "docs", "POST", f"v1/documents/{made['id']}:batchUpdate", {"requests": [insert]})
    finally:
        await _trash(google, made["id"])
    return "a document was made, filled, and went to the trash"


async def _draft(google: Google) -> str:
    made = await _new_draft(google, {})
    await ask(google, "gmail", "DELETE", f"gmail/v1/users/me/drafts/{made['id']}")
    return "a draft was made and deleted"


async def _new_draft(google: Google, headers: Mapping[str, str]) -> dict[str, Any]:
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = "Quire tries this"
    for name, value in headers.items():
        mail[name] = value
    mail.set_content("It is deleted at once.")
    raw = base64.urlsafe_b64encode(mail.as_bytes()).decode()
    return await ask(google, "gmail", "POST", "gmail/v1/users/me/drafts", {"message": {"raw": raw}})


def _new_event() -> dict[str, Any]:
    start = datetime(2000, 1, 1, tzinfo=UTC)
    times = {"start": start, "end": start + timedelta(hours=1)}
    key = base64.b32hexencode(secrets.token_bytes(20)).decode().lower()
    shown = {name: {"dateTime": time.isoformat()} for name, time in times.items()}
    return {"id": key, "summary": "Quire tries this", **shown}


_EVENTS = "calendar/v3/calendars/primary/events"


async def _event(google: Google) -> str:
    body = _new_event()
    await ask(google, "calendar", "POST", f"{_EVENTS}?sendUpdates=none", body)
    await ask(google, "calendar", "DELETE", f"{_EVENTS}/{body['id']}?sendUpdates=none")
    return "an event without guests, in the year 2000, was made and deleted"


async def _task(google: Google) -> str:
    made = await ask(google, "tasks", "POST", "tasks/v1/lists/@default/tasks", {"title": "Quire tries this"})
    await ask(google, "tasks", "DELETE", f"tasks/v1/lists/@default/tasks/{made['id']}")
    return "a task was made and deleted"


_ACTS: Mapping[str, Callable[[Google], Awaitable[str]]] = {
    "drive": _file,
    "docs": _document,
    "gmail": _draft,
    "calendar": _event,
    "tasks": _task,
}
#: What only reads, or waits, has nothing to take away: its scope was tried.
_READS = ("drive.text", "drive.export", "docs.read", "gmail.thread", "calendar.busy")


async def try_acts(google: Google, acts: Sequence[str], project: str = "") -> list[Tried]:
    """Try the acts of the flows, each kind once, without a trace."""
    found = []
    kinds: dict[str, list[str]] = {}
    for act in acts:
        word = act.partition(".")[0]
        if word in _BASES and act not in _READS:
            kinds.setdefault(word, []).append(act)
    for kind, names in kinds.items():
        found.append(await _try_kind(google, kind, ", ".join(names), project))
    return found


async def _try_kind(google: Google, kind: str, names: str, project: str) -> Tried:
    if kind == "gmail" and google.mail == SEND_ONLY:
        return Tried("well", f"{names}: mail is send-only, so nothing can be tried without sending", names)
    if (act := _ACTS.get(kind)) is None:
        return Tried("well", f"{names}: people would see a try, so only the scope was tried", names)
    try:
        return Tried("well", f"{names}: {await act(google)}", names)
    except MissingScope as error:
        scopes = " ".join(dict.fromkeys(NEEDS[name].narrowest[0] for name in names.split(", ")))
        return Tried("problem", f"{names}: {error} Run: quire connect --add {scopes}", names)
    except ApiDisabled as error:
        return Tried("problem", f"{names}: {error} {disabled(kind, project)}", names)
    except GoogleError as error:
        return Tried("problem", f"{names}: {error}", names)


# -- what nobody knows of Google -----------------------------------------------------------------------------------


async def try_questions(google: Google, scopes: Iterable[str]) -> list[Tried]:
    """Find out what Google's pages leave open, for this account, as far as that leaves no trace."""
    apis = {api_of(short(scope)) for scope in scopes}
    found = []
    if "gmail" in apis and google.mail != SEND_ONLY:
        found.append(await _answered(google, "a Message-ID of our own", _message_id))
    if "calendar" in apis:
        found.append(await _answered(google, "a second event with the id of a deleted one", _second_event))
    if "drive" in apis:
        found.append(await _answered(google, "a mark that is searched for at once", _mark))
    if "docs" in apis or "drive" in apis:
        found.append(await _answered(google, "an export right after a change", _export))
    found.append(
        Tried(
            "well",
            "not tried, because people would receive something: two sends of one draft at once, a webhook of Chat with "
            "a request id, the mail of a file that is shared twice",
            "left",
        )
    )
    return found


async def _answered(google: Google, name: str, ask_: Callable[[Google], Awaitable[Tried]]) -> Tried:
    try:
        return (await ask_(google))._replace(name=name)
    except GoogleError as error:
        return Tried("warning", f"{name}: could not be tried: {error}", name)


async def _message_id(google: Google) -> Tried:
    own = f"<{secrets.token_hex(16)}@quire.invalid>"
    made = await _new_draft(google, {"Message-ID": own})
    path = f"gmail/v1/users/me/drafts/{made['id']}"
    try:
        read = await ask(google, "gmail", "GET", f"{path}?format=metadata")
    finally:
        await ask(google, "gmail", "DELETE", path)
    headers = {one["name"].lower(): one["value"] for one in read["message"].get("payload", {}).get("headers", ())}
    kept = headers.get("message-id") == own
    return Tried("well", f"a Message-ID of our own is {'kept' if kept else 'replaced'} in a draft; no act rests on it")


async def _second_event(google: Google) -> Tried:
    body = _new_event()
    await ask(google, "calendar", "POST", f"{_EVENTS}?sendUpdates=none", body)
    try:
        refused = await _refused(google, body)
    finally:
        await ask(google, "calendar", "DELETE", f"{_EVENTS}/{body['id']}?sendUpdates=none")
    later = await _refused(google, body)
    if refused and later:
        return Tried("well", "a second event with the same id is refused, also after the first was deleted")
    if not later:
        await ask(google, "calendar", "DELETE", f"{_EVENTS}/{body['id']}?sendUpdates=none")
    return Tried("problem", "a second event with the same id is taken: calendar.event could invite people twice here")


async def _refused(google: Google, body: Mapping[str, Any]) -> bool:
    try:
        await ask(google, "calendar", "POST", f"{_EVENTS}?sendUpdates=none", body)
    except AlreadyThere:
        return True
    return False


async def _mark(google: Google) -> Tried:
    mark = secrets.token_hex(16)
    body = {"name": "Quire tries this", "mimeType": "text/plain", "appProperties": {"quire": mark}}
    made = await ask(google, "drive", "POST", "drive/v3/files", body)
    try:
        query = f"appProperties has {{ key='quire' and value='{mark}' }}".replace(" ", "%20").replace("'", "%27")
        query = query.replace("{", "%7B").replace("}", "%7D").replace("=", "%3D")
        listed = await ask(google, "drive", "GET", f"drive/v3/files?q={query}")
    finally:
        await _trash(google, made["id"])
    when = "found at once" if listed.get("files") else "not found at once"
    return Tried("well", f"a file that is searched for by its mark is {when}; copies are looked for in their folder")


async def _export(google: Google) -> Tried:
    word = secrets.token_hex(8)
    made = await ask(google, "drive", "POST", "drive/v3/files", {"name": "Quire tries this", "mimeType": DOC})
    try:
        insert = {"insertText": {"location": {"index": 1}, "text": word}}
        await ask(google, "docs", "POST", f"v1/documents/{made['id']}:batchUpdate", {"requests": [insert]})
        seen = await ask(google, "drive", "GET", f"drive/v3/files/{made['id']}/export?mimeType=text/plain")
    finally:
        await _trash(google, made["id"])
    if word in seen.get("text", ""):
        return Tried("well", "an export right after a change holds the new text")
    return Tried("warning", "an export right after a change holds the old text: wait some seconds before drive.pdf")
