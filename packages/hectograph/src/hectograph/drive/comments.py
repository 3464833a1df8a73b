"""Comments on a file and the replies to them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core.clock import stamp
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.drive.file import File, user

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi


def handle(api: DriveApi, name: str, file: File, parts: Mapping[str, str], request: Request) -> Response:
    if not name.endswith(".delete"):
        api.needs_fields(request)
    if name == "comments.create":
        made = _made(api, file, api.object(request))
        api.world.drive.touched(file, content=False)
        return api.answer(made, "Comment", request)
    if name == "comments.list":
        return _list(api, list(reversed(file.comments.values())), "comments", "Comment", request)
    deleted = request.flag("includeDeleted")
    held = file.comments.get(parts["commentId"])
    if held is None or (held["deleted"] and not deleted):
        raise ApiError.drive(404, "notFound", f"Comment not found: {parts['commentId']}.", location="commentId")
    match name:
        case "comments.update":
            new = _changed(api, held, api.object(request))
            file.comments[parts["commentId"]] = new
            return api.answer(new, "Comment", request)
        case "comments.delete":
            file.comments[parts["commentId"]] = _gone(api, held)
            return Response(204)
        case "replies.create":
            return _reply(api, file, held, api.object(request), request)
        case "replies.list":
            return _list(api, held["replies"], "replies", "Reply", request)
        case "comments.get":
            return api.answer(held, "Comment", request)
    found = next((reply for reply in held["replies"] if reply["id"] == parts["replyId"]), None)
    if found is None or (found["deleted"] and not deleted):
        raise ApiError.drive(404, "notFound", f"Reply not found: {parts['replyId']}.", location="replyId")
    if name == "replies.get":
        return api.answer(found, "Reply", request)
    new = _gone(api, found) if name == "replies.delete" else _changed(api, found, api.object(request))
    replies = [new if reply is found else reply for reply in held["replies"]]
    file.comments[parts["commentId"]] = {**held, "replies": replies}
    return Response(204) if name == "replies.delete" else api.answer(new, "Reply", request)


def _list(api: DriveApi, items: list[dict[str, Any]], name: str, message: str, request: Request) -> Response:
    size, start = api.integer(request, "pageSize", 20, 1, 100), api.page(request)
    since = request.one("startModifiedTime")
    wanted = [
        item
        for item in items
        if (request.flag("includeDeleted") or not item["deleted"]) and item["modifiedTime"][:19] >= since[:19]
    ]
    kind = "drive#commentList" if name == "comments" else "drive#replyList"
    out: dict[str, Any] = {"kind": kind, name: wanted[start : start + size]}
    if start + size < len(wanted):
        out["nextPageToken"] = api.next_page(start + size)
    return api.answer(out, f"{message}List" if message == "Comment" else "ReplyList", request)


def _author(api: DriveApi) -> dict[str, Any]:
    return {k: v for k, v in user(api.world.drive.author).items() if k in {"kind", "displayName", "me"}}


def _made(api: DriveApi, file: File, given: Mapping[str, Any]) -> dict[str, Any]:
    now = stamp(api.world.now())
    made = {
        "kind": "drive#comment",
        "id": "AAAA" + secrets.token_urlsafe(8),
        "createdTime": now,
        "modifiedTime": now,
        "author": _author(api),
        "deleted": False,
        "htmlContent": given.get("content", ""),
        "content": given.get("content", ""),
        "replies": [],
    }
    made |= {k: given[k] for k in ("anchor", "quotedFileContent") if given.get(k) is not None}
    file.comments[made["id"]] = made
    return made


def _changed(api: DriveApi, held: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    content = str(given.get("content", held.get("content", "")))
    return {**held, "content": content, "htmlContent": content, "modifiedTime": stamp(api.world.now())}


def _gone(api: DriveApi, held: dict[str, Any]) -> dict[str, Any]:
    """What is left of something deleted: all but its words."""
    kept = {k: v for k, v in held.items() if k not in {"content", "htmlContent", "author"}}
    return {**kept, "deleted": True, "modifiedTime": stamp(api.world.now())}


def _reply(api: DriveApi, file: File, held: dict[str, Any], given: Mapping[str, Any], request: Request) -> Response:
    now = stamp(api.world.now())
    action = given.get("action")
    if not given.get("content") and not action:
        raise ApiError.drive(400, "required", "Required", location="content", location_type="other")
    reply: dict[str, Any] = {
        "kind": "drive#reply",
        "id": "AAAA" + secrets.token_urlsafe(8),
        "createdTime": now,
        "modifiedTime": now,
        "author": _author(api),
        "deleted": False,
    }
    if given.get("content"):
        reply |= {"htmlContent": given["content"], "content": given["content"]}
    new = {**held, "replies": [*held["replies"], reply], "modifiedTime": now}
    if action:
        if action not in {"resolve", "reopen"}:
            raise ApiError.drive(400, "invalid", "Invalid Value", location="action", location_type="other")
        reply["action"] = action
        new["resolved"] = action == "resolve"
    file.comments[held["id"]] = new
    return api.answer(reply, "Reply", request)
