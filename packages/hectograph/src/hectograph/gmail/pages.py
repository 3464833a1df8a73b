"""The page ``/mail``: every mailbox, its threads, and an answer as its owner. ``/outbox``: all that left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hectograph.core.html import back, button, escape, form, given, link, page, quoted, table
from hectograph.core.http import Request, Response
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Mail

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi


def show(api: GmailApi, request: Request) -> Response:
    parts = request.path.strip("/").split("/")[1:]
    if request.method == "POST":
        sent = given(request)
        done = api.world.act(sent)
        where = f"/mail/{quoted(sent['as'])}"
        return back(f"{where}/{done['threadId']}" if sent.get("do") == "mail.reply" else where)
    with api.world.lock:
        if not parts:
            return _all(api)
        box = api.post.mailbox(parts[0])
        if len(parts) == 1:
            return _box(box)
        if parts[-1] == "source" and parts[1] in box.mails:
            source = box.mails[parts[1]].raw.decode("utf-8", "replace")
            return Response(200, source.encode(), {"Content-Type": "text/plain; charset=utf-8"})
        if len(parts) == 4 and parts[1] in box.mails:
            return _file(box.mails[parts[1]], parts[3])
        return _thread(box, box.thread(parts[1]))


def _file(mail: Mail, number: str) -> Response:
    """Return an attachment, by its place among those of the mail."""
    if not number.isdigit() or int(number) >= len(mail.files):
        return page("Mail", "<p>There is no such file.</p>", "/mail", 404)
    name, kind, content = mail.files[int(number)]
    shown = f"attachment; filename*=UTF-8''{quoted(name)}"
    return Response(200, content, {"Content-Type": kind, "Content-Disposition": shown})


def _all(api: GmailApi) -> Response:
    rows = []
    for account, box in sorted(api.post.mailboxes.items()):
        unread = sum("UNREAD" in one.labels for one in box.mails.values())
        name = link("/mail/" + quoted(account), account)
        rows.append([f"<span class=unread>{name}</span>" if unread else name, str(len(box.mails)), str(unread)])
    body = table(("mailbox", "mails", "unread"), rows, "Nobody has sent a mail yet.")
    return page("Mailboxes", body, "/mail")


def _box(box: Mailbox) -> Response:
    threads: dict[str, list[Mail]] = {}
    for mail in sorted(box.mails.values(), key=lambda one: (one.at, one.message_id)):
        if not mail.labels & {"TRASH", "SPAM"}:
            threads.setdefault(mail.thread_id, []).append(mail)
    rows = []
    for key, mails in sorted(threads.items(), key=lambda pair: pair[1][-1].at, reverse=True):
        last = mails[-1]
        title = link(f"/mail/{quoted(box.account)}/{key}", mails[0].subject or "(no subject)")
        if any("UNREAD" in one.labels for one in mails):
            title = f"<span class=unread>{title}</span>"
        title += f" ({len(mails)})" if len(mails) > 1 else ""
        draft = " · draft" if any("DRAFT" in one.labels for one in mails) else ""
        rows.append([title + f"<div class=quiet>{last.snippet}</div>", escape(last.header("From")) + draft,
                     f"{last.at:%d %b %H:%M}"])  # fmt: skip
    write = form(
        "/mail",
        "<h2>Write as this person</h2><label><span>To</span><input class=wide name=to required></label>"
        "<label><span>Subject</span><input class=wide name=subject></label>"
        "<label><span>Text</span><textarea name=text></textarea></label>" + button("Send"),
        {"as": box.account, "do": "mail.send"},
    )
    return page(box.account, table(("thread", "last from", "at"), rows, "This mailbox is empty.") + write, "/mail")


def _thread(box: Mailbox, mails: list[Mail]) -> Response:
    if not mails:
        return page(box.account, "<p>There is no such thread.</p>", "/mail", 404)
    out = f"<p>{link('/mail/' + quoted(box.account), 'mailbox of ' + box.account)}</p>"
    for mail in mails:
        place = f"/mail/{quoted(box.account)}/{mail.message_id}"
        files = ", ".join(
            f"{link(f'{place}/file/{at}', name)} ({len(content)} bytes)"
            for at, (name, _, content) in enumerate(mail.files)
        )
        source = link(f"{place}/source", "source")
        out += (
            f"<div class=card><b>{escape(mail.header('From'))}</b> to {escape(mail.header('To'))}"
            f"<div class=quiet>{mail.at:%d %b %Y %H:%M} · {escape(', '.join(sorted(mail.labels)))} · {source}</div>"
            f"<pre>{escape(mail.text)}</pre>" + (f"<div class=quiet>files: {files}</div>" if files else "")
        )
        if "SENT" not in mail.labels and "DRAFT" not in mail.labels:
            hidden = {"as": box.account, "message": mail.message_id}
            reply = form(
                "/mail",
                "<label><span>Your answer</span><textarea name=text required></textarea></label>" + button("Reply"),
                {**hidden, "do": "mail.reply"},
            )
            bounce = form("/mail", button("Bounce this", look="plain"), {**hidden, "do": "mail.bounce"})
            read = form("/mail", button("Mark as read", look="plain"), {**hidden, "do": "mail.read"})
            out += reply + f"<div class=row>{bounce}{read if 'UNREAD' in mail.labels else ''}</div>"
        out += "</div>"
    return page(mails[0].subject or "(no subject)", out, "/mail")
