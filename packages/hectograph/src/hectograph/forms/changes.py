"""The requests of ``forms.batchUpdate``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.batch import Handler, field_mask
from hectograph.core.error import Invalid
from hectograph.drive.file import File
from hectograph.forms.form import Form, Json

_VERSION = "forms.v1"


@dataclass
class Batch:
    form: Form
    file: File
    mint: Callable[[], str]


def _index(form: Form, given: Mapping[str, Any] | None, *, end: int) -> int:
    if given is None:
        raise Invalid("A location is required.")
    index = int(given.get("index", 0))
    if not 0 <= index < len(form.items) + end:
        raise Invalid(f"Index {index} is out of bounds: the form has {len(form.items)} items.")
    return index


def _completed(batch: Batch, item: Json) -> tuple[Json, list[str]]:
    """Return an item with all its ids, and those of its questions."""
    kinds = [name for name in item if name.endswith("Item")]
    if len(kinds) != 1:
        raise Invalid("An item must have exactly one kind.")
    taken = {one["itemId"] for one in batch.form.items}
    out = {**item, "itemId": item.get("itemId") or batch.mint()}
    if out["itemId"] in taken:
        raise Invalid(f"The item ID {out['itemId']} is already used.")
    questions = []
    if "questionItem" in out:
        questions.append(out["questionItem"].setdefault("question", {}))
    questions += out.get("questionGroupItem", {}).get("questions", [])
    for one in questions:
        one["questionId"] = one.get("questionId") or batch.mint()
    if "questionItem" in out and len(questions[0]) < 2:
        raise Invalid("A question must have a kind.")
    return out, [one["questionId"] for one in questions]


def create_item(batch: Batch, given: Json) -> Json:
    at = _index(batch.form, given.get("location"), end=1)
    item, questions = _completed(batch, given.get("item", {}))
    batch.form.items.insert(at, item)
    return {"itemId": item["itemId"], **({"questionId": questions} if questions else {})}


def update_item(batch: Batch, given: Json) -> None:
    at = _index(batch.form, given.get("location"), end=0)
    mask = field_mask(_VERSION, {"fields": given.get("updateMask", "")}, "Item")
    old = batch.form.items.pop(at)
    new = fieldmask.merged(old, given.get("item", {}), mask)
    new.setdefault("itemId", old["itemId"])
    if "questionItem" in old and "questionItem" in new:
        question = new["questionItem"].setdefault("question", {})
        question.setdefault("questionId", old["questionItem"]["question"]["questionId"])
    item, _ = _completed(batch, new)
    batch.form.items.insert(at, item)


def move_item(batch: Batch, given: Json) -> None:
    old = _index(batch.form, given.get("originalLocation"), end=0)
    new = _index(batch.form, given.get("newLocation"), end=0)
    batch.form.items.insert(new, batch.form.items.pop(old))


def delete_item(batch: Batch, given: Json) -> None:
    del batch.form.items[_index(batch.form, given.get("location"), end=0)]


def update_info(batch: Batch, given: Json) -> None:
    mask = field_mask(_VERSION, {"fields": given.get("updateMask", "")}, "Info")
    info = given.get("info", {})
    if fieldmask.wants(mask, "title"):
        batch.form.title = info.get("title", "")
    if fieldmask.wants(mask, "description"):
        batch.form.description = info.get("description", "")
    if "documentTitle" in mask:
        raise Invalid("The document title can only be changed by Drive.")


def update_settings(batch: Batch, given: Json) -> None:
    mask = field_mask(_VERSION, {"fields": given.get("updateMask", "")}, "FormSettings")
    batch.form.settings = fieldmask.merged(batch.form.settings, given.get("settings", {}), mask)


HANDLERS: Mapping[str, Handler[Batch]] = {
    "createItem": create_item,
    "updateItem": update_item,
    "moveItem": move_item,
    "deleteItem": delete_item,
    "updateFormInfo": update_info,
    "updateSettings": update_settings,
}
