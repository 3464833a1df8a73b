"""The Forms v1 API."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core.batch import replies
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.core.quota import Charge, Limit
from hectograph.core.service import Act, MethodCall, Play, Service
from hectograph.drive.file import FORM, File
from hectograph.forms import changes, pages
from hectograph.forms.editor import FormsEditor
from hectograph.forms.form import Form, micros, unordered
from hectograph.forms.people import People

if TYPE_CHECKING:
    from hectograph.world import World

_DAYS = 7


class FormsApi(Service):
    version = "forms.v1"
    pages = ("/form", "/forms")
    limits: ClassVar = {
        "read": Limit(per_user=390, per_project=975),
        "expensive_read": Limit(per_user=180, per_project=450),
        "write": Limit(per_user=150, per_project=375),
    }
    switches: ClassVar = {
        # Who may answer a published form: those with whom Drive shares it, or anybody.
        "form_access": ("shared", "anybody"),
    }

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.editor = FormsEditor()
        world.drive.editors[FORM] = self.editor
        self.people = People(self)
        self._random = random.Random(13)

    @property
    def forms(self) -> dict[str, Form]:
        return self.editor.forms

    def methods(self) -> Mapping[str, Play]:
        found: dict[str, Play] = {
            "create": self.create,
            "get": self.get,
            "batchUpdate": self.batch_update,
            "setPublishSettings": self.publish,
            "responses.get": self.response,
            "responses.list": self.responses,
            "watches.create": self.watch,
            "watches.list": self.watches,
            "watches.renew": self.renew,
            "watches.delete": self.unwatch,
        }
        return {f"forms.{name}": play for name, play in found.items()}

    def acts(self) -> Mapping[str, Act]:
        return self.people.acts()

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        if call.name == "forms.responses.list":
            return [Charge("expensive_read")]
        return super().charges(call)

    def dump(self) -> Any:
        return [one.dump() for one in self.forms.values()]

    def load(self, held: Any) -> None:
        self.editor.forms = {one["form_id"]: Form.load(one) for one in held}

    def clear(self) -> None:
        self.forms.clear()

    def mint(self) -> str:
        """Return a new id of an item or a question: eight hex digits."""
        return f"{self._random.getrandbits(31):08x}"

    def mint_response(self) -> str:
        return "ACYDBN" + "".join(
            self._random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", k=40)
        )

    def gone(self) -> ApiError:
        return self.refuse(404, "Requested entity was not found.")

    def _found(self, call: MethodCall) -> tuple[File, Form]:
        file = self.world.drive.files.get(call.parts["formId"])
        if file is None or file.file_id not in self.forms:
            raise self.gone()
        return file, self.forms[file.file_id]

    def shown(self, file: File, form: Form) -> dict[str, Any]:
        return form.json(file.name, self.base())

    def create(self, call: MethodCall) -> Any:
        """Make an empty form. Only its titles can be set at once; strangers cannot see it until it is published."""
        given = call.body()
        info = given.get("info", {})
        if set(given) - {"info"} or set(info) - {"title", "documentTitle"}:
            text = "Only info.title can be set when creating a form. To add items and change settings, use batchUpdate."
            raise self.refuse(400, text)
        if not info.get("title"):
            raise self.refuse(400, "Form title is required.")
        # The document calls this field read-only, which it is for every method but this one.
        document = call.request.json()["info"].get("documentTitle") or "Untitled form"
        file = self.world.drive.create({"name": document, "mimeType": FORM})
        form = self.forms[file.file_id]
        form.title = info["title"]
        return self.shown(file, form)

    def get(self, call: MethodCall) -> Any:
        return self.shown(*self._found(call))

    def batch_update(self, call: MethodCall) -> Any:
        file, form = self._found(call)
        given = call.body()
        control = given.get("writeControl", {})
        required = control.get("requiredRevisionId")
        if required and required != form.revision_id:
            raise self.refuse(400, f"The required revision ID '{required}' does not match the latest revision.")
        new = form.fork()
        made = list(replies(changes.Batch(new, file, self.mint), given.get("requests", []), changes.HANDLERS))
        new.revision += 1
        self.forms[file.file_id] = new
        self.world.drive.touched(file)
        self.tell(new, "SCHEMA")
        out: dict[str, Any] = {"replies": made, "writeControl": {"requiredRevisionId": new.revision_id}}
        return out | ({"form": self.shown(file, new)} if given.get("includeFormInResponse") else {})

    def publish(self, call: MethodCall) -> Any:
        file, form = self._found(call)
        given = call.body()
        state = given.get("publishSettings", {}).get("publishState", {})
        published, accepting = bool(state.get("isPublished")), bool(state.get("isAcceptingResponses"))
        if accepting and not published:
            raise self.refuse(400, "A form that is not published cannot accept responses.")
        form.published, form.accepting = published, accepting
        self.world.drive.touched(file, content=False)
        return {"formId": form.form_id, "publishSettings": form.publish_settings()}

    # Responses.

    def response(self, call: MethodCall) -> Any:
        _, form = self._found(call)
        found = form.responses.get(call.parts["responseId"])
        if found is None:
            raise self.gone()
        return {"formId": form.form_id, **found.json(form.collects)}

    def responses(self, call: MethodCall) -> Any:
        _, form = self._found(call)
        found = unordered(form.responses)
        if call.text("filter"):
            later, moment = self._since(call.text("filter"))
            found = [one for one in found if one.submitted > moment or (not later and one.submitted == moment)]
        size, token = call.number("pageSize", 5000, 5000) or 5000, call.text("pageToken")
        if token and not token.isdigit():
            raise self.refuse(400, "Invalid page token.")
        start = int(token or 0)
        out: dict[str, Any] = {}
        if found[start : start + size]:
            out["responses"] = [one.json(form.collects) for one in found[start : start + size]]
        if start + size < len(found):
            out["nextPageToken"] = str(start + size)
        return out

    def _since(self, text: str) -> tuple[bool, datetime]:
        match = re.fullmatch(r"\s*timestamp\s*(>=?)\s*(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)Z\s*", text)
        if match is None:
            raise self.refuse(400, "Invalid filter. Supported: timestamp > N and timestamp >= N, N in RFC3339 UTC.")
        sign, moment = match.groups()
        return sign == ">", datetime.fromisoformat(moment[:26] + "+00:00")

    # Watches.

    def watches(self, call: MethodCall) -> Any:
        _, form = self._found(call)
        self._drop_old(form)
        return {"watches": list(form.watches.values())} if form.watches else {}

    def watch(self, call: MethodCall) -> Any:
        _, form = self._found(call)
        given = call.body()
        watch = given.get("watch", {})
        topic = watch.get("target", {}).get("topic", {}).get("topicName", "")
        kind = watch.get("eventType", "")
        if kind not in {"SCHEMA", "RESPONSES"}:
            raise self.refuse(400, "watch.event_type is required.")
        if not self.world.topics.known(topic):
            raise self.refuse(400, f"The topic {topic} does not exist, or cannot be published to.")
        self._drop_old(form)
        if any(one["eventType"] == kind for one in form.watches.values()):
            raise self.refuse(409, f"There is a watch for {kind} of this form already.", status="ALREADY_EXISTS")
        key = given.get("watchId") or f"{self._random.getrandbits(128):032x}"
        now = self.world.now()
        form.watches[key] = {
            "id": key,
            "target": {"topic": {"topicName": topic}},
            "eventType": kind,
            "createTime": micros(now),
            "expireTime": micros(now + timedelta(days=_DAYS)),
            "state": "ACTIVE",
        }
        return form.watches[key]

    def _drop_old(self, form: Form) -> None:
        now = micros(self.world.now())
        form.watches = {key: one for key, one in form.watches.items() if one["expireTime"] > now}

    def _watch(self, call: MethodCall) -> tuple[Form, str]:
        _, form = self._found(call)
        self._drop_old(form)
        if call.parts["watchId"] not in form.watches:
            raise self.gone()
        return form, call.parts["watchId"]

    def renew(self, call: MethodCall) -> Any:
        form, key = self._watch(call)
        form.watches[key]["expireTime"] = micros(self.world.now() + timedelta(days=_DAYS))
        return form.watches[key]

    def unwatch(self, call: MethodCall) -> Any:
        form, key = self._watch(call)
        del form.watches[key]
        return {}

    def tell(self, form: Form, kind: str) -> None:
        """Tell the topics that watch a form that something happened, not what."""
        self._drop_old(form)
        for key, one in form.watches.items():
            if one["eventType"] == kind:
                attributes = {"formId": form.form_id, "eventType": kind, "watchId": key}
                self.world.topics.publish(one["target"]["topic"]["topicName"], b"", attributes)
