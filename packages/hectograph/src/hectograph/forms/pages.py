"""The pages ``/forms`` and ``/form/ID``: a form to fill in, and to edit afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hectograph.core.html import back, button, escape, every, form, link, page, table
from hectograph.core.http import Request, Response
from hectograph.forms.form import Asked, Form

if TYPE_CHECKING:
    from hectograph.forms.api import FormsApi

_OWN = "__own"


def show(api: FormsApi, request: Request) -> Response:
    word, *rest = request.path.strip("/").split("/")
    with api.world.lock:
        if word == "forms" or not rest:
            return _all(api)
        found = api.forms.get(rest[0])
    if found is None:
        return page("Forms", "<p>There is no such form.</p>", "/forms", 404)
    if request.method == "POST":
        return _submit(api, found, request)
    with api.world.lock:
        return _form(api, found, request)


def _all(api: FormsApi) -> Response:
    rows = [
        [link(f"/form/{one.form_id}", one.title or "(no title)"), str(len(one.responses)),
         "open" if one.published and one.accepting else "closed"]
        for one in api.forms.values()
    ]  # fmt: skip
    return page("Forms", table(("form", "responses", ""), rows, "No forms yet."), "/forms")


def _submit(api: FormsApi, held: Form, request: Request) -> Response:
    sent = every(request)
    answers: dict[str, list[str]] = {}
    for one in held.questions():
        values = [value for value in sent.get(one.key, []) if value and value != _OWN]
        if _OWN in sent.get(one.key, []):
            values += [value for value in sent.get(one.key + _OWN, []) if value]
        answers[one.key] = values
    who, response = sent.get("as", [""])[0], sent.get("response", [""])[0]
    made = api.world.act({"do": "form.fill", "form": held.form_id, "as": who, "response": response, "answers": answers})
    return back(f"/form/{held.form_id}?done={made['response']}")


def _form(api: FormsApi, held: Form, request: Request) -> Response:
    done, edited = request.one("done"), request.one("edit")
    if done:
        again = link(f"/form/{held.form_id}?edit={done}", "Edit your response")
        other = link(f"/form/{held.form_id}", "Submit another response")
        return page(held.title, f"<p>Your response has been recorded.</p><p>{again}</p><p>{other}</p>", "/forms")
    response = held.responses.get(edited)
    who = response.email if response else "person@example.com"
    refusal = api.people.may_answer(held, who)
    out = f"<p>{escape(held.description)}</p>" if held.description else ""
    if refusal:
        out += f"<p class=card>{escape(refusal)}</p>"
    out += f'<label><span>Your address</span><input name=as type=email value="{escape(who)}"></label>'
    for one in held.questions():
        out += f"<div class=card>{_question(one, response.answers.get(one.key, []) if response else [])}</div>"
    hidden = {"response": edited} if response else {}
    return page(held.title or "Form", form(f"/form/{held.form_id}", out + button("Submit"), hidden), "/forms")


def _question(asked: Asked, values: list[str]) -> str:
    key, first = escape(asked.key), escape(values[0]) if values else ""
    star = " <span aria-label=required>*</span>" if asked.required else ""
    title = f"{escape(asked.title)}{star}"
    if asked.kind == "paragraph":
        return f'<label><span>{title}</span><textarea name="{key}">{first}</textarea></label>'
    if asked.kind == "DROP_DOWN":
        options = "".join(
            f"<option{' selected' if one in values else ''}>{escape(one)}</option>" for one in ("", *asked.choices)
        )
        return f'<label><span>{title}</span><select name="{key}">{options}</select></label>'
    if asked.choices or asked.other:
        look = "checkbox" if asked.kind == "CHECKBOX" else "radio"
        items = "".join(
            f'<label><input type={look} name="{key}" value="{escape(one)}"{" checked" if one in values else ""}>'
            f" {escape(one)}</label>"
            for one in asked.choices
        )
        if asked.other:
            items += (
                f'<label><input type={look} name="{key}" value="{_OWN}"> Other:'
                f' <input name="{key}{_OWN}" aria-label="other"></label>'
            )
        return f"<fieldset><legend>{title}</legend>{items}</fieldset>"
    look = {"date": "date", "time": "time"}.get(asked.kind, "text")
    return f'<label><span>{title}</span><input class=wide type={look} name="{key}" value="{first}"></label>'
