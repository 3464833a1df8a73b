"""The Gmail v1 API: mails, drafts, threads and history."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core.error import GMAIL, ApiError
from hectograph.core.http import Request, Response
from hectograph.core.quota import PROJECT, Charge, Exceeded, Limit
from hectograph.core.service import Act, MethodCall, Play, Service
from hectograph.gmail import pages
from hectograph.gmail.drafts import Drafts
from hectograph.gmail.labels import Labels
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json, Mail
from hectograph.gmail.people import People
from hectograph.gmail.post import PostOffice, decoded
from hectograph.gmail.query import Search
from hectograph.gmail.settings import Settings
from hectograph.gmail.threads import Threads

if TYPE_CHECKING:
    from hectograph.world import World

_AUTH = "https://www.googleapis.com/auth/"

#: What calls cost in units, by method; where nothing is said, 5.
_UNITS = {
    "drafts.create": 10,
    "drafts.delete": 10,
    "drafts.send": 100,
    "drafts.update": 15,
    "getProfile": 1,
    "history.list": 2,
    "labels.get": 1,
    "labels.list": 1,
    "messages.batchDelete": 50,
    "messages.batchModify": 50,
    "messages.delete": 10,
    "messages.import": 25,
    "messages.insert": 25,
    "messages.send": 100,
    "settings.sendAs.list": 1,
    "threads.delete": 20,
    "threads.get": 10,
    "threads.list": 10,
    "threads.modify": 10,
    "threads.trash": 10,
    "threads.untrash": 10,
    "stop": 50,
    "watch": 100,
}

#: The names of the kinds in the history, as the parameter ``historyTypes`` has them.
_KINDS = {
    "messagesAdded": "messageAdded",
    "messagesDeleted": "messageDeleted",
    "labelsAdded": "labelAdded",
    "labelsRemoved": "labelRemoved",
}


class GmailApi(Service):
    version = "gmail.v1"
    envelope = GMAIL
    pages = ("/mail",)
    limits: ClassVar = {"queries": Limit(per_user=6000, per_project=1_200_000)}
    switches: ClassVar = {
        # What becomes of a Message-ID that the caller gave.
        "message_id": ("replaced", "kept"),
        # How many of two sends of one draft that race with each other win.
        "draft_race": ("one", "both"),
        # After how many seconds a search finds a new mail.
        "mail_lag": (0.0,),
        # For how many days the history is kept.
        "history_days": (7.0,),
        # How many mails an account may send in 24 hours; 0 is any number.
        "mail_daily": (0.0,),
    }

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.post = PostOffice(world)
        self.people = People(self)
        self.labels = Labels(self)
        self.drafts = Drafts(self)
        self.threads = Threads(self)
        self.settings = Settings(self)

    def methods(self) -> Mapping[str, Play]:
        found: dict[str, Play] = {
            "getProfile": self.profile,
            "history.list": self.history,
            "watch": self.watch,
            "stop": self.stop,
            "messages.attachments.get": self.attachment,
            **{f"messages.{name}": play for name, play in self._of_messages().items()},
            **{f"drafts.{name}": play for name, play in self.drafts.methods().items()},
            **{f"threads.{name}": play for name, play in self.threads.methods().items()},
            **self.labels.methods(),
            **self.settings.methods(),
        }
        return {f"users.{name}": play for name, play in found.items()}

    def _of_messages(self) -> Mapping[str, Play]:
        return {
            "send": self.send,
            "get": self.get,
            "list": self.list_messages,
            "insert": self.insert,
            "import": self.insert,
            "modify": self.modify,
            "trash": self.trash,
            "untrash": self.untrash,
            "delete": self.delete,
            "batchModify": self.batch_modify,
            "batchDelete": self.batch_delete,
        }

    def acts(self) -> Mapping[str, Act]:
        return self.people.acts()

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        return [Charge("queries", _UNITS.get(call.name.removeprefix("users."), 5))]

    def over(self, found: Exceeded) -> ApiError:
        user = found.scope == "user"
        limit = "Queries per minute" + (" per user" if user else "")
        text = (
            f"Quota exceeded for quota metric 'Queries' and limit '{limit}' of service 'gmail.googleapis.com' for "
            f"consumer 'project_number:{PROJECT}'."
        )
        reason = "userRateLimitExceeded" if user else "rateLimitExceeded"
        return self.refuse(403, text, reason, domain="usageLimits")

    def dump(self) -> Any:
        return {"mailboxes": [one.dump() for one in self.post.mailboxes.values()], "rules": self.post.rules}

    def load(self, held: Any) -> None:
        self.post.rules = held["rules"]
        self.post.mailboxes = {one["account"]: Mailbox.load(one, self.world.now) for one in held["mailboxes"]}

    def clear(self) -> None:
        self.post.mailboxes.clear()

    # What many methods need.

    def box(self, call: MethodCall) -> Mailbox:
        """Return the caller's mailbox. Nobody reads that of somebody else."""
        caller = call.caller
        if caller.robot:
            raise self.refuse(400, "Precondition check failed.", "failedPrecondition", status="FAILED_PRECONDITION")
        wanted = call.parts["userId"].lower()
        if wanted not in {"me", caller.email.lower()}:
            raise self.refuse(403, f"Delegation denied for {caller.email}", "forbidden")
        found = self.post.mailbox(caller.email)
        found.drop_history(self.world.now() - timedelta(days=float(self.world.switches["history_days"])))
        return found

    def gone(self) -> ApiError:
        return self.refuse(404, "Requested entity was not found.", "notFound")

    def key(self, text: str) -> str:
        """Return an id as it is stored, or refuse what is none."""
        if not re.fullmatch(r"[0-9a-fA-F]{1,16}", text) or int(text, 16) >= 2**63:
            raise self.refuse(400, "Invalid id value", "invalidArgument")
        return f"{int(text, 16):016x}"

    def mail(self, call: MethodCall, box: Mailbox) -> Mail:
        found = box.mails.get(self.key(call.parts["id"]))
        if found is None:
            raise self.gone()
        return found

    def form(self, call: MethodCall) -> str:
        """Return the format of the answer; a token for metadata alone gets no bodies."""
        form = call.text("format", "full").lower()
        if form in {"full", "raw"} and self._metadata_only(call):
            if "format" in call.request.query:
                raise self.refuse(403, f"Metadata scope doesn't allow format {form.upper()}", "forbidden")
            return "metadata"
        return form

    def _metadata_only(self, call: MethodCall) -> bool:
        scopes = call.caller.scopes
        if scopes is None or _AUTH + "gmail.metadata" not in scopes:
            return False
        return not scopes & {_AUTH + "gmail.readonly", _AUTH + "gmail.modify", "https://mail.google.com/"}

    def raw(self, call: MethodCall, message: Mapping[str, Any]) -> bytes:
        """Return the source of the mail that came with a call. Headers beside it count for nothing."""
        if call.media is not None and call.media.content:
            return call.media.content
        if not message.get("raw"):
            text = "'raw' RFC822 payload message string or uploading message via /upload/* URL required"
            raise self.refuse(400, text, "invalidArgument")
        try:
            return decoded(str(message["raw"]))
        except ValueError as error:
            text = "Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed"
            raise self.refuse(400, text, "invalidArgument") from error

    # Messages.

    def send(self, call: MethodCall) -> Any:
        box, given = self.box(call), call.body()
        raw = self.raw(call, given)
        return self.sent(box, raw, str(given.get("threadId", "")))

    def sent(self, box: Mailbox, raw: bytes, thread: str, *, sure: bool = False) -> Json:
        mail = Mail("", "", raw, self.world.now())
        if not mail.addresses("To", "Cc", "Bcc"):
            header = next((name for name in ("To", "Cc", "Bcc") if mail.header(name)), "")
            text = f"Invalid {header} header" if header else "Recipient address required"
            raise self.refuse(400, text, "invalidArgument")
        self._check_daily(box)
        if thread and not box.thread(thread):
            raise self.gone()
        made = self.post.send(box, raw, thread if sure else box.thread_of(mail, thread))
        return made.labelled()

    def _check_daily(self, box: Mailbox) -> None:
        most, day = float(self.world.switches["mail_daily"]), self.world.now() - timedelta(days=1)
        recent = [at for at in box.sent_at if at > day]
        if most and len(recent) >= most:
            until = (recent[0] + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            raise self.refuse(429, f"User-rate limit exceeded.  Retry after {until}", "rateLimitExceeded")

    def get(self, call: MethodCall) -> Any:
        mail = self.mail(call, self.box(call))
        return mail.json(self.form(call), call.texts("metadataHeaders"))

    def attachment(self, call: MethodCall) -> Any:
        box = self.box(call)
        mail = box.mails.get(self.key(call.parts["messageId"]))
        content = None if mail is None else mail.attachment(call.parts["id"])
        if content is None:
            raise self.refuse(400, "Invalid attachment token", "invalidArgument") if mail else self.gone()
        return {"size": len(content), "data": base64.urlsafe_b64encode(content).decode()}

    def found(self, call: MethodCall, box: Mailbox) -> list[Mail]:
        """Return the mails that a list asks for, the newest first."""
        text = call.text("q")
        if text and self._metadata_only(call):
            raise self.refuse(403, "Metadata scope does not support 'q' parameter", "forbidden")
        now = self.world.now()
        names = {one["name"].casefold(): key for key, one in box.labels.items()}
        search = Search(text, now, names)
        wanted = set(call.texts("labelIds"))
        unknown = wanted - box.known_labels()
        if unknown:
            raise self.refuse(400, f"Invalid label: {min(unknown)}", "invalidArgument")
        everything = call.flag("includeSpamTrash") or search.anywhere or wanted & {"SPAM", "TRASH"}
        seen = now - timedelta(seconds=float(self.world.switches["mail_lag"])) if text else now
        out = []
        for mail in box.mails.values():
            if not everything and mail.labels & {"SPAM", "TRASH"}:
                continue
            if mail.at > seen or not wanted <= mail.labels or not search.matches(mail):
                continue
            out.append(mail)
        return sorted(out, key=lambda one: (one.at, one.message_id), reverse=True)

    def page(self, call: MethodCall, found: list[Any], word: str, shown: Callable[[Any], Json]) -> Json:
        """Return one page of a list, with the token of the next."""
        size = call.number("maxResults", 100, 500)
        token = call.text("pageToken")
        if token and not token.isdigit():
            raise self.refuse(400, "Invalid pageToken", "invalidArgument")
        start = int(token or 0)
        out: Json = {}
        if found[start : start + size]:
            out[word] = [shown(one) for one in found[start : start + size]]
        if start + size < len(found):
            out["nextPageToken"] = str(start + size).zfill(20)
        out["resultSizeEstimate"] = len(found)
        return out

    def list_messages(self, call: MethodCall) -> Any:
        return self.page(call, self.found(call, self.box(call)), "messages", Mail.short)

    def insert(self, call: MethodCall) -> Any:
        """Put a mail into the mailbox without sending it; ``import`` takes it as one that arrived."""
        box, given = self.box(call), call.body()
        raw = self.raw(call, given)
        labels = set(given.get("labelIds", ()))
        self.labels.check(box, labels, fixed=False)
        mail = Mail("", "", raw, self.world.now())
        thread = str(given.get("threadId", ""))
        joined = box.thread_of(mail, thread) if thread else ""
        if call.name.endswith("import"):
            joined = joined or box.thread_by_references(mail)
        made = box.add(raw, labels, joined)
        self.post.pushed(box)
        return made.labelled()

    def modify(self, call: MethodCall) -> Any:
        box, given = self.box(call), call.body()
        return self._relabelled(call, box, *self.wanted_labels(box, given))

    def wanted_labels(self, box: Mailbox, given: Mapping[str, Any]) -> tuple[set[str], set[str]]:
        """Return which labels a call puts on mails, and which it takes away."""
        add, remove = set(given.get("addLabelIds", ())), set(given.get("removeLabelIds", ()))
        self.labels.check(box, add | remove)
        return add, remove

    def _relabelled(self, call: MethodCall, box: Mailbox, add: set[str], remove: set[str]) -> Json:
        """Return a mail after a change of its labels: shortly, or as it is known where nothing changed."""
        mail = self.mail(call, box)
        if not box.relabel([mail], add, remove):
            return mail.known()
        self.post.pushed(box)
        return mail.labelled()

    def trash(self, call: MethodCall) -> Any:
        return self._relabelled(call, self.box(call), {"TRASH"}, {"INBOX"})

    def untrash(self, call: MethodCall) -> Any:
        return self._relabelled(call, self.box(call), set(), {"TRASH"})

    def delete(self, call: MethodCall) -> Any:
        box = self.box(call)
        box.remove(self.mail(call, box))
        self.post.pushed(box)
        return Response(204)

    def batch_modify(self, call: MethodCall) -> Any:
        box, given = self.box(call), call.body()
        mails = [box.mails[key] for one in given.get("ids", ()) if (key := self.key(one)) in box.mails]
        if box.relabel(mails, *self.wanted_labels(box, given)):
            self.post.pushed(box)
        return Response(204)

    def batch_delete(self, call: MethodCall) -> Any:
        box = self.box(call)
        for one in call.body().get("ids", ()):
            if (mail := box.mails.get(self.key(one))) is not None:
                box.remove(mail)
        return Response(204)

    # History.

    def profile(self, call: MethodCall) -> Any:
        box = self.box(call)
        threads = {one.thread_id for one in box.mails.values()}
        return {
            "emailAddress": box.account,
            "messagesTotal": len(box.mails),
            "threadsTotal": len(threads),
            "historyId": str(box.number),
        }

    def history(self, call: MethodCall) -> Any:
        box, text = self.box(call), call.text("startHistoryId")
        if not text:
            raise self.refuse(400, "Missing required parameter: startHistoryId", "invalidArgument")
        if not text.isdigit():
            raise self.refuse(400, "Invalid startHistoryId", "invalidArgument")
        since = int(text)
        if since > box.number or since < box.forgotten:
            raise self.gone()
        kinds, label = set(call.texts("historyTypes")), call.text("labelId")
        found = [
            one
            for one in box.history
            if one.number > since and (not kinds or _KINDS[one.kind] in kinds) and (not label or one.about(label))
        ]
        out = self.page(call, found, "history", lambda one: one.json())
        del out["resultSizeEstimate"]
        return {**out, "historyId": str(box.number)}

    def watch(self, call: MethodCall) -> Any:
        box, given = self.box(call), call.body()
        topic = str(given.get("topicName", ""))
        if not re.fullmatch(r"projects/[^/]+/topics/[^/]+", topic):
            raise self.refuse(400, "Invalid topicName does not match projects/*/topics/*", "invalidArgument")
        if not self.world.topics.known(topic):
            raise self.refuse(404, f"Resource not found (resource={topic.rpartition('/')[2]}).", "notFound")
        until = self.world.now() + timedelta(days=7)
        box.watch = {"topicName": topic, "expiration": str(int(until.timestamp() * 1000))}
        return {"historyId": str(box.number), "expiration": box.watch["expiration"]}

    def stop(self, call: MethodCall) -> Any:
        self.box(call).watch = {}
        return Response(204)
