"""Who may see a file. A share is a state, "this person has this role", and no mail leaves unless it is asked for.

Google mails a person again each time that a share with a notice is repeated. So one whose answer was lost is repeated
only when its time is over and the list of permissions still lacks the person.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quire.errors import did_you_mean
from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.addresses import one_address
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.drive.looking import look
from quire.workspace.values import FileLike, Shared, id_of

#: What people call the roles, and Google.
_ROLES = {"reader": "reader", "commenter": "commenter", "writer": "writer", "editor": "writer", "viewer": "reader"}


def _of(permissions: Sequence[dict[str, Any]], who: str) -> dict[str, Any] | None:
    return next((one for one in permissions if str(one.get("emailAddress", "")).lower() == who.lower()), None)


async def _check(act: Act[Any], given: Given) -> dict[str, str]:
    if given.role not in _ROLES:
        raise Fail(f"{given.role!r} is no role{did_you_mean(given.role, _ROLES)}; it may be {', '.join(_ROLES)}")
    who = one_address(given.who, "who")
    there = await look(act, given.file)
    held = _of(await (await google(act.connection)).drive.permissions_list(id_of(given.file)), who)
    if held is not None and held.get("role") == "owner":
        raise Fail(f"{who} owns {there.get('name', '')!r}; the role of an owner is not changed here")
    return {"who": who, "role": _ROLES[given.role], "before": str((held or {}).get("role", ""))}


async def _find(act: Act[Any], given: Given) -> Shared | NotDone:
    held = _of(await (await google(act.connection)).drive.permissions_list(id_of(given.file)), act.prepared["who"])
    if held is not None and held.get("role") == act.prepared["role"]:
        return Shared(id_of(given.file), str(held["id"]), act.prepared["who"], act.prepared["role"])
    return NotDone(f"{act.prepared['who']} has not the role {act.prepared['role']}")


async def _undo(act: Act[Any], shared: Shared) -> Kept | None:
    drive = (await google(act.connection)).drive
    try:
        held = _of(await drive.permissions_list(shared.file), shared.who)
        if held is None or held.get("role") == act.prepared["before"]:
            return None
        if held.get("role") != shared.role:
            return Kept(f"{shared.who} has the role {held.get('role')} by now; it stays")
        if act.prepared["before"]:
            await drive.permissions_update(shared.file, str(held["id"]), act.prepared["before"])
        else:
            await drive.permissions_delete(shared.file, str(held["id"]))
    except Missing:
        return None  # the file is gone, or the permission
    return None


@google_effect(check=_check, find=_find, undo=_undo, fenced="settled", timeout="30s")
async def share(
    act: Act[Any], file: FileLike, who: str, role: str = "reader", *, notify: bool = False, message: str = ""
) -> Shared:
    """Give a person a role on a file: reader, commenter or writer. ``notify``: Google mails them, with ``message``."""
    drive = (await google(act.connection)).drive
    wanted, before = act.prepared, act.prepared["before"]
    with sure():
        if before == wanted["role"] and not notify:
            held = _of(await drive.permissions_list(id_of(file)), wanted["who"])
            if held is not None:
                return Shared(id_of(file), str(held["id"]), wanted["who"], wanted["role"])
        made = await drive.permissions_create(
            id_of(file), wanted["who"], wanted["role"], notify=notify, message=message
        )
    return Shared(id_of(file), str(made["id"]), wanted["who"], wanted["role"])
