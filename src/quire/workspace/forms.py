"""What people answered in a form: a plain function for ``run.call``, and what the source ``Form`` reads with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from quire.workspace.connection import google, refusing
from quire.workspace.values import FileLike, FormResponse, id_of


def questions(form: Mapping[str, Any]) -> dict[str, str]:
    """The titles of a form's questions, by the ids under which answers stand."""
    found = {}
    for item in form.get("items", ()):
        title = str(item.get("title", ""))
        if question := item.get("questionItem", {}).get("question"):
            found[str(question["questionId"])] = title
        for row in item.get("questionGroupItem", {}).get("questions", ()):
            found[str(row["questionId"])] = f"{title} [{row.get('rowQuestion', {}).get('title', '')}]"
    return found


def as_response(found: Mapping[str, Any], titles: Mapping[str, str]) -> FormResponse:
    """The value for a response as Forms shows it: by the titles of the questions, lists where there are several."""
    answers: dict[str, Any] = {}
    for question, held in (found.get("answers") or {}).items():
        values = [one.get("value", "") for one in held.get("textAnswers", {}).get("answers", ())]
        values += [one.get("fileId", "") for one in held.get("fileUploadAnswers", {}).get("answers", ())]
        answers[titles.get(question, question)] = values[0] if len(values) == 1 else values
    created, submitted = (datetime.fromisoformat(str(found[word])) for word in ("createTime", "lastSubmittedTime"))
    return FormResponse(str(found["responseId"]), created, submitted, str(found.get("respondentEmail", "")), answers)


async def responses(form: FileLike, since: datetime | None = None, *, using: str = "") -> list[FormResponse]:
    """Return the responses to a form, the oldest first; only those given or edited ``since`` then."""
    forms = (await google(using)).forms
    with refusing():
        titles = questions(await forms.get(id_of(form)))
        after = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z" if since is not None else ""
        found = [as_response(one, titles) for one in await forms.responses_list(id_of(form), since=after)]
    return sorted(found, key=lambda one: (one.submitted_at, one.id))
