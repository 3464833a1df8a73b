"""The page ``/chat``: spaces, their messages, cards whose buttons work, and a box to write in."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hectograph.chat.space import Json, Message, Space
from hectograph.core.html import back, button, escape, every, form, given, link, page
from hectograph.core.http import Request, Response

if TYPE_CHECKING:
    from hectograph.chat.api import ChatApi

#: Who writes on the page, unless somebody else is named.
_SOMEBODY = "person@example.com"


def show(api: ChatApi, request: Request) -> Response:
    parts = request.path.strip("/").split("/")[1:]
    if request.method == "POST":
        return _act(api, request)
    with api.world.lock:
        if not parts:
            return _all(api)
        space = api.held.get(f"spaces/{parts[0]}")
        if space is None:
            return page("Chat", "<p>There is no such space.</p>", "/chat", 404)
        return _space(api, space, request.one("as") or _SOMEBODY)


def _act(api: ChatApi, request: Request) -> Response:
    sent = given(request)
    if sent["do"] == "chat.click":
        known = {"do", "as", "message", "button"}
        inputs = {name: values for name, values in every(request).items() if name not in known}
        api.world.act({**{name: sent[name] for name in known}, "inputs": inputs})
        where = sent["message"].split("/")[1]
    else:
        done = api.world.act(sent)
        where = done["name"].split("/")[1]
    return back(f"/chat/{where}" + (f"?as={sent['as']}" if sent.get("as") else ""))


def _all(api: ChatApi) -> Response:
    lines = "".join(
        f"<li>{link('/chat/' + one.name.partition('/')[2], one.title or one.name)} ({len(one.living())})</li>"
        for one in api.held.values()
    )
    new = form("/chat", "<label><span>New space</span><input name=title required></label>" + button("Make it"),
               {"do": "chat.space"})  # fmt: skip
    return page("Chat", (f"<ul>{lines}</ul>" if lines else "<p class=quiet>No spaces yet.</p>") + new, "/chat")


def _space(api: ChatApi, space: Space, me: str) -> Response:
    threads: dict[str, list[Message]] = {}
    for message in space.living():
        threads.setdefault(message.thread, []).append(message)
    out = ""
    for messages in threads.values():
        inside = "".join(_message(message, me) for message in messages)
        out += f"<div class=card>{inside}{_write(space, me, messages[0].thread, 'Reply')}</div>"
    hook = f"<details><summary>webhook of this space</summary><pre>{escape(api.events.webhook(space))}</pre></details>"
    empty = "" if out else "<p class=quiet>Nobody has written here.</p>"
    return page(space.title or space.name, out + empty + _write(space, me, "", "Write") + hook, "/chat")


def _write(space: Space, me: str, thread: str, word: str) -> str:
    who = f'<input name=as value="{escape(me)}" aria-label="who writes" size=22>'
    text = "<input name=text required aria-label=text size=34>"
    hidden = {"do": "chat.write", "space": space.name, "thread": thread}
    return form("/chat", f"<div class=row>{who}{text}{button(word, look='plain' if thread else '')}</div>", hidden)


def _message(message: Message, me: str) -> str:
    sender = str(message.sender.get("displayName", message.sender["name"]))
    badge = " · app" if message.sender["type"] == "BOT" else ""
    edited = " · edited" if message.updated else ""
    head = f"<b>{escape(sender)}</b> <span class=quiet>{message.created:%d %b %H:%M}{badge}{edited}</span>"
    text = escape(str(message.fields.get("text", "")))
    cards = "".join(_card(message, one.get("card", {}), me) for one in message.fields.get("cardsV2", ()))
    return f"<div>{head}<div>{text.replace(chr(10), '<br>')}</div>{cards}</div>"


def _card(message: Message, card: Json, me: str) -> str:
    header = card.get("header", {})
    out = f"<b>{_text(header.get('title', ''))}</b><div class=quiet>{_text(header.get('subtitle', ''))}</div>"
    for section in card.get("sections", ()):
        out += f"<div class=quiet>{_text(section['header'])}</div>" if section.get("header") else ""
        out += "".join(_widget(one) for one in section.get("widgets", ()))
    return f"<div class=bubble>{form('/chat', out, {'do': 'chat.click', 'as': me, 'message': message.name})}</div>"


def _widget(widget: Json) -> str:
    ((kind, held),) = [(k, v) for k, v in widget.items() if k != "horizontalAlignment"][:1] or [("", {})]
    draw = _WIDGETS.get(kind)
    return draw(held) if draw else f"<pre>{escape(json.dumps(widget, indent=1))}</pre>"


def _text(text: Any) -> str:
    """Return the text of a card: a few tags are let through, all else is shown as it is."""
    return re.sub(r"&lt;(/?(?:b|i|u|s|br|strong|em)\s*/?)&gt;", r"<\1>", escape(str(text))).replace("\n", "<br>")


def _decorated(held: Json) -> str:
    rows = (held.get("topLabel", ""), held.get("text", ""), held.get("bottomLabel", ""))
    looks = ("quiet", "", "quiet")
    out = "".join(f"<div class='{look}'>{_text(row)}</div>" for row, look in zip(rows, looks, strict=True) if row)
    return out + (_button(held["button"]) if "button" in held else "")


def _button(held: Json) -> str:
    target = held.get("onClick", {}).get("openLink", {}).get("url")
    if target:
        return link(target, held.get("text", target))
    action = held.get("onClick", {}).get("action", {})
    word = held.get("text") or held.get("altText") or action.get("function", "?")
    return button(word, "button", held.get("text") or action.get("function", ""))


def _buttons(held: Json) -> str:
    return f"<div class=row>{''.join(_button(one) for one in held.get('buttons', ()))}</div>"


def _columns(held: Json) -> str:
    cells = ("".join(_widget(one) for one in column.get("widgets", ())) for column in held.get("columnItems", ()))
    return f"<div class=row>{''.join(f'<div>{cell}</div>' for cell in cells)}</div>"


def _input(held: Json) -> str:
    name, value = escape(held.get("name", "")), escape(held.get("value", ""))
    box = f"<textarea name='{name}'>{value}</textarea>"
    if held.get("type") != "MULTIPLE_LINE":
        box = f'<input class=wide name="{name}" value="{value}">'
    return f"<label><span>{_text(held.get('label', ''))}</span>{box}</label>"


def _selection(held: Json) -> str:
    name, kind = escape(held.get("name", "")), held.get("type", "")
    if kind in {"CHECK_BOX", "RADIO_BUTTON", "SWITCH"}:
        look = "radio" if kind == "RADIO_BUTTON" else "checkbox"
        items = "".join(
            f'<label><input type={look} name="{name}" value="{escape(one["value"])}"'
            f"{' checked' if one.get('selected') else ''}> {_text(one['text'])}</label>"
            for one in held.get("items", ())
        )
        return f"<fieldset><legend>{_text(held.get('label', ''))}</legend>{items}</fieldset>"
    options = "".join(
        f'<option value="{escape(one["value"])}"{" selected" if one.get("selected") else ""}>'
        f"{escape(one['text'])}</option>"
        for one in held.get("items", ())
    )
    return f'<label><span>{_text(held.get("label", ""))}</span><select name="{name}">{options}</select></label>'


def _image(held: Json) -> str:
    return f'<img src="{escape(held.get("imageUrl", ""))}" alt="{escape(held.get("altText", ""))}">'


_WIDGETS = {
    "textParagraph": lambda held: f"<p>{_text(held.get('text', ''))}</p>",
    "decoratedText": _decorated,
    "buttonList": _buttons,
    "columns": _columns,
    "divider": lambda held: "<hr>",
    "image": _image,
    "textInput": _input,
    "selectionInput": _selection,
}
