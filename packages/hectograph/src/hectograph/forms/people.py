"""What people do with forms, by ``POST /emulator/person`` and on the page ``/form/ID``.

| do | takes |
|---|---|
| ``form.fill`` | ``form``, ``answers`` (title or question id to value or list), ``as``, ``response`` (to edit one) |
| ``form.link`` | ``form``, ``book`` (a new one unless told): from now on each response is a row of that book, too |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hectograph.core.service import Act
from hectograph.drive.file import SPREADSHEET
from hectograph.forms.form import APART, Answered, Form

if TYPE_CHECKING:
    from hectograph.forms.api import FormsApi

#: The tab that Google gives the responses of a linked form.
TAB = "Form Responses 1"


class People:
    def __init__(self, api: FormsApi) -> None:
        self.api = api

    def acts(self) -> Mapping[str, Act]:
        return {"form.fill": self.fill, "form.link": self.link}

    def _form(self, given: Mapping[str, Any]) -> Form:
        found = self.api.forms.get(str(given.get("form", "")))
        if found is None:
            raise ValueError(f"there is no form {given.get('form')!r}")
        return found

    def may_answer(self, form: Form, email: str) -> str:
        """Return why somebody cannot answer a form, or ""."""
        if not form.published:
            return "This form is not published. Its maker has to publish it first."
        if not form.accepting:
            return f"The form {form.title} is no longer accepting responses."
        if self.api.world.switches["form_access"] == "anybody":
            return ""
        file = self.api.world.drive.files[form.form_id]
        for one in file.permissions.values():
            domain = one["type"] == "domain" and email.endswith("@" + one.get("domain", "?"))
            if one["type"] == "anyone" or domain or one.get("emailAddress", "").lower() == email.lower():
                return ""
        return "You need permission. Its maker has to share the form with you, or with anyone."

    def fill(self, given: Mapping[str, Any]) -> Any:
        """Submit a response, or edit one."""
        form, email = self._form(given), str(given.get("as", ""))
        refusal = self.may_answer(form, email)
        if refusal:
            raise ValueError(refusal)
        answers = {
            str(key): [str(one) for one in value] if isinstance(value, list) else [str(value)]
            for key, value in dict(given.get("answers") or {}).items()
        }
        checked = form.check(answers)
        now = self.api.world.now()
        held = form.responses.get(str(given.get("response", "")))
        if given.get("response") and held is None:
            raise ValueError(f"the form has no response {given['response']!r}")
        if held is None:
            created = now.replace(microsecond=now.microsecond // 1000 * 1000)
            held = Answered(self.api.mint_response(), created, created + APART, email, checked)
            form.responses[held.response_id] = held
        else:
            held.answers, held.submitted = checked, now
        self._write(form, held)
        self.api.tell(form, "RESPONSES")
        self.api.world.dirty()
        return {"response": held.response_id}

    def link(self, given: Mapping[str, Any]) -> Any:
        form, world = self._form(given), self.api.world
        form.sheet = str(given.get("book", ""))
        if not form.sheet:
            made = world.drive.create({"name": f"{form.title} (Responses)", "mimeType": SPREADSHEET})
            form.sheet = made.file_id
            world.type({"book": form.sheet, "do": "rename_sheet", "title": TAB})
        else:
            world.type({"book": form.sheet, "do": "add_sheet", "title": TAB})
        titles = ["Timestamp", *(["Email Address"] if form.collects else []), *(one.title for one in form.questions())]
        world.type({"book": form.sheet, "sheet": TAB, "do": "edit", "range": "A1", "values": [titles]})
        for one in form.responses.values():
            self._write(form, one)
        world.dirty()
        return {"book": form.sheet}

    def _write(self, form: Form, held: Answered) -> None:
        """Put a response into the linked sheet: a new row below all others, or the row that it has."""
        if not form.sheet:
            return
        world = self.api.world
        at = held.submitted.astimezone(ZoneInfo(world.time_zone))
        cells = [f"{at.month}/{at.day}/{at.year} {at:%H:%M:%S}", *([held.email] if form.collects else [])]
        cells += [", ".join(held.answers.get(one.key, [])) for one in form.questions()]
        given: dict[str, Any] = {"book": form.sheet, "sheet": TAB, "values": [cells]}
        if held.row:
            world.type({**given, "do": "edit", "range": f"A{held.row}"})
        else:
            held.row = int(world.type({**given, "do": "append"})["row"])
