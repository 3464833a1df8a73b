"""How a mail is built, and refused if Gmail would not take it or something else would leave than people were shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

from quire.workflows.effect import Act
from quire.workflows.retry import Fail
from quire.workspace.addresses import addresses
from quire.workspace.connection import google
from quire.workspace.declaring import Given
from quire.workspace.values import FileLike, id_of, outside_key

HEADER = "X-Quire-Key"
#: What Gmail takes in one mail, with its attachments.
MOST_BYTES = 25_000_000
_OURS = "to cc bcc from subject date message-id in-reply-to references auto-submitted mime-version x-quire-key"
_NAMES = "to subject text html cc bcc attach inline from_ headers as_person take_back"

#: A file in Drive, or a name with bytes.
Attachment = FileLike | tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Part:
    """A file as it goes with a mail."""

    name: str
    mime: str
    content: bytes
    #: What tells it from another one, the same in each look at it.
    print: str


class _Text(HTMLParser):
    """The text of HTML, as mail readers without it show it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("style", "script", "head")
        if tag in ("br", "p", "div", "tr", "li", "h1", "h2", "h3"):
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script", "head")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def text_of_html(html: str) -> str:
    """Return the text of an HTML mail."""
    reader = _Text()
    reader.feed(html)
    return "\n".join(line.strip() for line in reader.text.strip().splitlines())


def one_line(text: str, what: str) -> str:
    """Refuse a header that would be two."""
    if "\n" in text or "\r" in text:
        raise Fail(f"the {what} holds a line break; write it on one line")
    return text


async def _part(act: Act[Any], given: Attachment) -> Part:
    if isinstance(given, tuple | list):
        name, content = given
        if not isinstance(content, bytes):
            raise Fail(f"the attachment {name!r} is {type(content).__name__}; give (name, bytes), or a file in Drive")
        return Part(one_line(name, "name of an attachment"), "", content, hashlib.sha256(content).hexdigest())
    drive = (await google(act.connection)).drive
    about = await drive.files_get(id_of(given), fields="id,name,mimeType,modifiedTime,md5Checksum,size")
    mime, name = str(about.get("mimeType") or ""), str(about.get("name", ""))
    if int(about.get("size", 0)) > MOST_BYTES:
        raise Fail(f"{name!r} has {int(about['size']) / 1e6:.0f} MB, and a mail takes 25; send a link to it instead")
    if mime.endswith(".folder"):
        raise Fail(f"{name!r} is a folder; attach files, or send a link to it")
    if mime.startswith("application/vnd.google-apps."):
        content = await drive.files_export(id_of(given), "application/pdf")
        return Part(f"{name}.pdf", "application/pdf", content, f"{about['id']} {about.get('modifiedTime', '')}")
    content = await drive.files_get_media(id_of(given))
    return Part(name, mime, content, hashlib.sha256(content).hexdigest())


def _kind(part: Part) -> tuple[str, str]:
    import mimetypes

    mime = part.mime or mimetypes.guess_type(part.name)[0] or "application/octet-stream"
    main, _, sub = mime.partition("/")
    return (main, sub) if main != "message" else ("application", "octet-stream")


def _set_headers(mail: EmailMessage, act: Act[Any], given: Given) -> None:
    for name in ("To", "Cc", "Bcc"):
        if people := addresses(getattr(given, name.lower(), ()), name.lower()):
            mail[name] = people
    if not any(name in mail for name in ("To", "Cc", "Bcc")):
        raise Fail("the mail has no receiver: give to, cc or bcc")
    mail["Subject"] = one_line(given.subject, "subject")
    if given.from_:
        mail["From"] = addresses(given.from_, "from_")
    if not given.as_person:
        mail["Auto-Submitted"] = "auto-generated"
    for name, value in given.headers.items():
        if (
            name.lower() in _OURS.split()
            or name.lower().startswith("content-")
            or not name.isascii()
            or not name.replace("-", "").isalnum()
        ):
            raise Fail(f"the header {name!r} cannot be set; headers of one's own begin with X-")
        mail[name] = one_line(str(value), f"header {name!r}")
    mail[HEADER] = outside_key(act.key)


def arguments(*values: Any) -> Given:
    """The arguments of a mail, in the order of ``gmail.send``, as ``composed`` takes them."""
    return SimpleNamespace(**dict(zip(_NAMES.split(), values, strict=False)))


async def composed(
    act: Act[Any], given: Given, thread: Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, Any]]:
    """Build the mail. Return its source, and what people are shown of it and the receipt keeps."""
    mail = EmailMessage(policy=SMTP)
    _set_headers(mail, act, given)
    for name, value in (thread or {}).items():
        mail[name] = value
    mail.set_content(given.text or text_of_html(given.html))
    parts: list[Part] = []
    if given.html:
        mail.add_alternative(given.html, subtype="html")
        body = mail.get_body(("html",))
        for cid, one in given.inline.items():
            parts.append(part := await _part(act, one))
            main, sub = _kind(part)
            assert body is not None
            body.add_related(part.content, main, sub, cid=f"<{cid}>", filename=part.name)
    elif given.inline:
        raise Fail("inline pictures need html, in which they stand as <img src='cid:NAME'>")
    for one in given.attach:
        parts.append(part := await _part(act, one))
        main, sub = _kind(part)
        mail.add_attachment(part.content, maintype=main, subtype=sub, filename=part.name)
    source = mail.as_bytes()
    if len(source) > MOST_BYTES:
        size = len(source) / 1e6
        raise Fail(f"the mail has {size:.0f} MB, and Gmail takes 25; give links to the files instead")
    return source, _summary(mail, given, parts, len(source))


def _summary(mail: EmailMessage, given: Given, parts: Sequence[Part], size: int) -> dict[str, Any]:
    people = {name.lower(): str(mail[name]) for name in ("To", "Cc", "Bcc", "From") if name in mail}
    files = [{"name": part.name, "bytes": len(part.content), "print": part.print} for part in parts]
    says = [people, given.subject, given.text, given.html, [(one["name"], one["print"]) for one in files]]
    print_ = hashlib.sha256(json.dumps(says, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
    about = {"bytes": size} if not any(part.mime == "application/pdf" for part in parts) else {}
    shown = [one["name"] for one in files]
    return {**people, "subject": given.subject, **({"files": shown} if shown else {}), **about, "hash": print_}
