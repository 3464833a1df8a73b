"""``workspace_tools``: acts and looks at Google as tools of an agent.

An act goes through ``run.once`` under the id of the tool's call, so an agent that is killed in the middle neither
repeats nor forgets it. What leaves the house is parked before: people see recipients, subject, text and attachments as
they would go out, and the engine acts on nothing else. Once a conversation has read what others wrote, every act asks,
until a person has answered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from quire.agents.acting import leaving, scope
from quire.agents.acting.leaving import Approve
from quire.agents.receipts import Reply
from quire.errors import DefinitionError, did_you_mean
from quire.model.codec import parse
from quire.run.run import Run
from quire.workflows.effect import Dropped, Effect
from quire.workflows.retry import Fail
from quire.workspace import calendar, chat, docs, drive, gmail

if TYPE_CHECKING:
    from pydantic_ai.toolsets import FunctionToolset

#: A look answers with so many characters at most; the rest is read on with ``start``.
MOST_CHARACTERS = 8_000
#: How many acts of one conversation may leave the house.
MOST_OUTGOING = 5


@dataclass(frozen=True)
class _House:
    """What is inside, and who decides about what goes out."""

    domain: str
    spaces: Collection[str]
    approve: Approve
    most: int
    approver: str | None


class _Look(Reply):
    """A look, kept under the name of the tool's call."""

    async def __call__(self, fn: Any, *args: Any) -> Any:
        return await fn(*args)


def workspace_tools(
    *products: str,
    domain: str = "",
    spaces: Sequence[str] = (),
    approve: Approve = "outside",
    most_outgoing: int = MOST_OUTGOING,
    approver: str | None = None,
) -> FunctionToolset[Any]:
    """Tools for ``drive``, ``docs``, ``gmail``, ``calendar`` and ``chat``, as a toolset for ``converse``.

    ``domain`` and ``spaces`` are the house. ``approve``: "outside" asks people about what leaves it and what has
    attachments, "always" about every act, a function decides by the tool's name and arguments. ``approver``: whom;
    otherwise the approver of the conversation.
    """
    from pydantic_ai.toolsets import FunctionToolset

    house = _House(domain, tuple(spaces), approve, most_outgoing, approver)
    known = _tools(house)
    for product in products:
        if product not in known:
            raise DefinitionError(f"there are no tools for {product!r}{did_you_mean(product, known)}")
    toolset: FunctionToolset[Any] = FunctionToolset(metadata={scope.DURABLE: True}, sequential=True)
    for product in products or known:
        for tool in known[product]:
            toolset.add_function(tool)
    return toolset


def _here(tool: str) -> scope.Call:
    found = scope.here()
    if found is None:
        raise DefinitionError(f"{tool} is a durable tool: it works within converse(run, agent, …) or durable(agent)")
    return found


async def _act(house: _House, tool: str, effect: Effect[..., Any, Any], args: dict[str, Any], *given: Any) -> Any:
    """Do an act once; ask people before, if it must be asked. The answer is for the model."""
    from pydantic_ai import ModelRetry

    call = _here(tool)
    talk, run = call.conversation, call.receipts.run
    goes_out = bool(leaving.outside(args, house.domain, house.spaces)) or tool == "gmail_reply"
    if goes_out and talk.left >= house.most:
        return f"It was not done: {talk.left} acts of this conversation have left the house, and no more may."
    effect = effect.named(call.name)
    asks = leaving.asks(tool, args, house.approve, domain=house.domain, spaces=house.spaces, reads=talk.read_outside)
    if asks:
        by = house.approver or call.receipts.approver
        effect = effect.parked(_question(house, call, tool, args), by=by, expires=call.receipts.expires)
    try:
        made = await run.once(effect, *given, **_options(args))
    except Dropped as error:
        return f"It was not done; {_who(error.answer.by)}{_note(error.answer.note)}."
    except Fail as error:
        raise ModelRetry(str(error)) from error
    if asks:
        talk.read_outside = False
    talk.left += goes_out
    return made


def _options(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an act takes by name."""
    names = ("attach", "cc", "invite", "description", "lasts", "parent")
    return {name: args[name] for name in names if args.get(name)}


def _who(by: str) -> str:
    return f"{by} said no" if by else "nobody released it in time"


def _note(note: str) -> str:
    return f": {note}" if note else ""


def _question(house: _House, call: scope.Call, tool: str, args: dict[str, Any]) -> str:
    """What people are asked, with those who are new in it."""
    data = call.receipts.run.data
    known = {*leaving.addresses(data if isinstance(data, str | dict) else vars(data)), *call.conversation.addresses}
    people = leaving.recipients(args)
    fresh = leaving.new(people, known, house.domain)
    to = f" to {', '.join(people)}" if people else ""
    new = f"; new: {', '.join(fresh)}" if fresh else ""
    read = " (it has read what others wrote)" if call.conversation.read_outside else ""
    return f"May {call.receipts.who} do {tool.replace('_', '.', 1)}{to}?{new}{read}"


async def _look(tool: str, fn: Any, *given: Any, start: int = 0, whence: str) -> str:
    """Look once, and answer with a piece of what others wrote, marked as such."""
    from pydantic_ai import ModelRetry

    call = _here(tool)
    call.conversation.read_outside = True
    run: Run[Any, Any] = call.receipts.run
    try:
        text = str(await run.call(_Look(call.name), fn, *given))
    except Fail as error:
        raise ModelRetry(str(error)) from error
    call.conversation.addresses.update(leaving.addresses(text))
    piece = text[start : start + MOST_CHARACTERS]
    left = len(text) - start - len(piece)
    more = f"\n[{left} characters follow; read on with start={start + len(piece)}]" if left > 0 else ""
    return leaving.quoted(piece, whence) + more


async def _thread_text(thread: str) -> str:
    """A thread as text, oldest mail first."""
    mails = await gmail.thread(thread)
    parts = [f"id: {one.id}\nfrom: {one.sender}\nto: {one.to}\nsubject: {one.subject}\n\n{one.text}" for one in mails]
    return "\n\n---\n\n".join(parts)


def _tools(house: _House) -> dict[str, list[Any]]:
    """The tools of each product. Their docstrings and types are what the model sees."""
    return {**_file_tools(house), **_people_tools(house)}


def _file_tools(house: _House) -> dict[str, list[Any]]:

    async def drive_folder(name: str, parent: str = "") -> dict[str, str]:
        """Make a folder. parent: the id or link of the folder in which it stands."""
        return _shown(await _act(house, "drive_folder", drive.folder, {"parent": parent}, name))

    async def drive_copy(template: str, name: str, parent: str = "") -> dict[str, str]:
        """Copy a file, by its id or link, into a folder."""
        return _shown(await _act(house, "drive_copy", drive.copy, {"parent": parent}, template, name))

    async def drive_pdf(document: str, parent: str = "") -> dict[str, str]:
        """Keep a Google document as a PDF in a folder."""
        return _shown(await _act(house, "drive_pdf", drive.pdf, {"parent": parent}, document))

    async def drive_share(file: str, who: str, role: str = "reader") -> dict[str, str]:
        """Let a person open a file. role: reader, commenter or writer."""
        return _shown(await _act(house, "drive_share", drive.share, {"who": who}, file, who, role))

    async def docs_read(document: str, start: int = 0) -> str:
        """Read a Google document, by its id or link."""
        return await _look("docs_read", docs.read, document, start=start, whence="a document")

    async def docs_fill(document: str, values: dict[str, str]) -> dict[str, str]:
        """Replace each {{name}} of a document by the value of that name."""
        return _shown(await _act(house, "docs_fill", docs.fill, {}, document, values))

    return {"drive": [drive_folder, drive_copy, drive_pdf, drive_share], "docs": [docs_read, docs_fill]}


def _people_tools(house: _House) -> dict[str, list[Any]]:
    async def gmail_read(thread: str, start: int = 0) -> str:
        """Read a thread of mails, by its id."""
        return await _look("gmail_read", _thread_text, thread, start=start, whence="mails")

    async def gmail_draft(to: list[str], subject: str, text: str) -> dict[str, str]:
        """Write a draft that a person may edit and send. Nobody receives it."""
        return _shown(await _act(house, "gmail_draft", gmail.draft, {}, to, subject, text))

    async def gmail_send(
        to: list[str], subject: str, text: str, cc: list[str] | None = None, attach: list[str] | None = None
    ) -> dict[str, str]:
        """Send a mail. attach: ids or links of files in Drive."""
        args = {"to": to, "cc": cc, "attach": attach}
        return _shown(await _act(house, "gmail_send", gmail.send, args, to, subject, text))

    async def gmail_reply(thread: str, text: str) -> dict[str, str]:
        """Answer the newest mail of a thread, by the thread's id."""
        return _shown(await _act(house, "gmail_reply", gmail.reply, {}, thread, text))

    async def calendar_event(
        title: str, start: datetime, lasts: str = "1h", invite: list[str] | None = None, description: str = ""
    ) -> dict[str, str]:
        """Make an event. start: a moment with its time zone. invite: addresses of guests."""
        args = {"lasts": lasts, "invite": invite, "description": description}
        return _shown(await _act(house, "calendar_event", calendar.event, args, title, start))

    async def chat_post(space: str, text: str) -> dict[str, str]:
        """Post into a space of Chat, like spaces/AAAA."""
        return _shown(await _act(house, "chat_post", chat.post, {"space": space}, space, text))

    return {
        "gmail": [gmail_read, gmail_draft, gmail_send, gmail_reply],
        "calendar": [calendar_event],
        "chat": [chat_post],
    }


def _shown(made: Any) -> dict[str, str]:
    """What an act made, in a few words: ids, links and names, no bodies."""
    if isinstance(made, str):
        return {"result": made}
    from quire.model.codec import PLAIN

    row = parse(PLAIN.encode(made, "what the act made"))
    return {name: str(value) for name, value in row.items() if isinstance(value, str | int | bool) and value != ""}
