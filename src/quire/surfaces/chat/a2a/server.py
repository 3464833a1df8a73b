"""The Agent2Agent protocol over JSON-RPC: the only module that knows the library.

There is no queue and no task store of the library's: every answer is read from the ledger, so a server that is killed
and started again, or another one beside it, goes on with every task.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from quire import __version__
from quire.client.client import Client
from quire.errors import IllegalMove, NotFound, QuireError
from quire.model.codec import parse
from quire.model.record import Record, Status
from quire.surfaces.chat.a2a import tasks
from quire.surfaces.chat.a2a.tasks import Said, Seen
from quire.surfaces.chat.mcp.tools import mission_of
from quire.surfaces.server.auth.tokens import Role

log = logging.getLogger("quire.a2a")

#: A call that waits for the end is answered after this long with the task as it is then.
WAIT_SECONDS = 55.0
_GLANCE_SECONDS = 0.2
_PAGE = 50

_STATUS_OF = {
    pb.TASK_STATE_COMPLETED: (Status.DONE,),
    pb.TASK_STATE_FAILED: (Status.ERROR,),
    pb.TASK_STATE_CANCELED: (Status.CANCELLED,),
}


# -- records as messages of the protocol -----------------------------------------------------------------------


def _text(text: str) -> pb.Part:
    return pb.Part(text=text, media_type="text/plain")


def _data(value: Any) -> pb.Part:
    part = pb.Part(media_type="application/json")
    json_format.ParseDict(value, part.data)
    return part


def _status(seen: Seen) -> pb.TaskStatus:
    status = pb.TaskStatus(state=pb.TaskState.Value(f"TASK_STATE_{seen.state.upper()}"))
    status.timestamp.FromMilliseconds(int(seen.record.updated_at * 1000))
    parts = []
    for one in seen.asked:
        parts += [_text(str(one.about.get("text", ""))), _data(tasks.question_json(one))]
    if seen.state in ("failed", "canceled"):
        parts.append(_text(seen.record.last_error or seen.state))
    if parts:
        message = pb.Message(
            message_id=f"{seen.record.record_id}.{seen.record.version}",
            task_id=seen.record.record_id,
            context_id=seen.context_id,
            role=pb.ROLE_AGENT,
            parts=parts,
        )
        status.message.CopyFrom(message)
    return status


def _message(seen: Seen, said: Said) -> pb.Message:
    """What an agent of the mission said, as a message of the task."""
    return pb.Message(
        message_id=f"{seen.record.record_id}.{said.agent}.{said.turn}",
        task_id=seen.record.record_id,
        context_id=seen.context_id,
        role=pb.ROLE_AGENT,
        parts=[_text(said.text), _data({"agent": said.agent, "turn": said.turn})],
    )


def _artifacts(record: Record) -> list[pb.Artifact]:
    if record.status is not Status.DONE or not record.result:
        return []
    result = parse(record.result)
    text = result.get("text", "") if isinstance(result, dict) else json.dumps(result)
    return [pb.Artifact(artifact_id="result", name="result", parts=[_text(str(text)), _data(result)])]


def _task(seen: Seen, *, artifacts: bool = True, said: Sequence[Said] = ()) -> pb.Task:
    return pb.Task(
        history=[_message(seen, one) for one in said],
        id=seen.record.record_id,
        context_id=seen.context_id,
        status=_status(seen),
        artifacts=_artifacts(seen.record) if artifacts else [],
    )


def card(mission: str, about: Mapping[str, Any], url: str) -> pb.AgentCard:
    """Return the mission as an agent: what it is, what it needs, and where it is called."""
    needs = about.get("inputs", [])
    agents = ", ".join(about.get("agents", []))
    what = f"A mission of {len(about.get('agents', []))} agents ({agents}) over {about.get('turns', 1)} turns; "
    what += f"{about.get('reducer', 'a reducer')} makes one result."
    wants = f" It needs: {', '.join(needs)}." if needs else " A text says what it is about."
    made = pb.AgentCard(
        name=mission,
        description=what + wants,
        version=__version__,
        capabilities=pb.AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        supported_interfaces=[pb.AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        skills=[pb.AgentSkill(id=mission, name=mission, description=what + wants, tags=["mission"])],
    )
    scheme = pb.SecurityScheme(http_auth_security_scheme=pb.HTTPAuthSecurityScheme(scheme="bearer"))
    made.security_schemes["token"].CopyFrom(scheme)
    requirement = pb.SecurityRequirement()
    requirement.schemes["token"].CopyFrom(pb.StringList())
    made.security_requirements.append(requirement)
    return made


# -- answering -------------------------------------------------------------------------------------------------


def _refused(error: Exception) -> A2AError:
    match error:
        case A2AError():
            return error
        case NotFound():
            return TaskNotFoundError(str(error))
        case QuireError():
            return InvalidParamsError(str(error))
        case _:
            log.error("unexpected: %s: %s", type(error).__name__, error, exc_info=error)
            return InternalError("something unexpected happened; the server's log has the details")


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Every refusal is one sentence, and an unexpected error stays in the log."""

    @functools.wraps(method)
    async def answer(self: Any, params: Any, context: ServerCallContext) -> Any:
        try:
            return await method(self, params, context)
        except Exception as error:
            raise _refused(error) from error

    return answer


class Missions(RequestHandler):
    """Answers the calls of one mission from the ledger."""

    def __init__(self, mission: str, client: Client, groups: Mapping[str, Sequence[str]], audit: Any) -> None:
        self.mission = mission
        self._client = client
        self._groups = groups
        self._audit = audit

    def _at(self, context: ServerCallContext, role: Role) -> Client:
        """A client that acts in the caller's name, if they may do this."""
        actor = context.state["request"].state.actor
        if actor.role.rank < role.rank:
            raise UnsupportedOperationError(f"{actor.name!r} is {actor.role.one}; this takes {role.one}")
        return self._client.acting_as(actor.name)

    @_refusing
    async def on_get_task(self, params: pb.GetTaskRequest, context: ServerCallContext) -> pb.Task | None:
        client = self._at(context, Role.VIEWER)
        seen = await tasks.see(client, self.mission, params.id)
        wanted = params.history_length if params.HasField("history_length") else None
        said = await tasks.said(client, seen) if wanted != 0 else []
        return _task(seen, said=said[-wanted:] if wanted else said)

    @_refusing
    async def on_list_tasks(self, params: pb.ListTasksRequest, context: ServerCallContext) -> pb.ListTasksResponse:
        client = self._at(context, Role.VIEWER)
        size = min(max(params.page_size or _PAGE, 1), 100)
        made = pb.ListTasksResponse(page_size=size)
        after, more = params.page_token, True
        while more and len(made.tasks) < size:
            found = await client.find(
                workflow=self.mission, status=_STATUS_OF.get(params.status, ()), after=after, limit=200
            )
            more = len(found) == 200
            for record in found:
                if len(made.tasks) == size:
                    more = True
                    break
                after = record.record_id
                if record.parent_id is not None:
                    continue
                seen = await tasks.see(client, self.mission, record.record_id)
                task = _task(seen, artifacts=params.include_artifacts)
                if params.status and task.status.state != params.status:
                    continue
                if not params.context_id or params.context_id == seen.context_id:
                    made.tasks.append(task)
        made.next_page_token = after if more else ""
        made.total_size = len(made.tasks)
        return made

    @_refusing
    async def on_cancel_task(self, params: pb.CancelTaskRequest, context: ServerCallContext) -> pb.Task | None:
        client = self._at(context, Role.OPERATOR)
        seen = await tasks.see(client, self.mission, params.id)
        try:
            await client.cancel(params.id, reason="asked over a2a")
        except IllegalMove as error:
            raise TaskNotCancelableError(str(error)) from error
        self._audit(context.state["request"], "cancel", seen.record.record_id, via="a2a")
        return _task(await tasks.see(client, self.mission, params.id))

    async def _taken(self, params: pb.SendMessageRequest, context: ServerCallContext) -> tuple[Client, Seen]:
        """Start the task that the message asks for, or give its answer to the task that it names."""
        client = self._at(context, Role.OPERATOR)
        message = params.message
        texts = [part.text for part in message.parts if part.WhichOneof("content") == "text"]
        data = [json_format.MessageToDict(part.data) for part in message.parts if part.WhichOneof("content") == "data"]
        request = context.state["request"]
        if message.task_id:
            seen = await tasks.see(client, self.mission, message.task_id)
            if seen.state != "input_required":
                raise UnsupportedOperationError(f"the task {message.task_id!r} asks nothing; it is {seen.state}")
            reply = tasks.reply_of(seen.asked, data)
            await client.answer(
                reply.record_id,
                reply.choice,
                note=reply.note,
                edits=reply.edits,
                seen=reply.seen,
                question=reply.seen,
                via="a2a",
                groups=self._groups,
            )
            self._audit(request, "answer", reply.record_id, choice=reply.choice, via="a2a")
            return client, await tasks.see(client, self.mission, message.task_id)
        about = await mission_of(client, self.mission)
        inputs = tasks.inputs_of(about, texts, data)
        task_id = tasks.task_id(self.mission, client.who, message.message_id)
        await tasks.keep_context(client, task_id, message.context_id)
        await client.start(self.mission, inputs, id=task_id)
        self._audit(request, "start mission", task_id, workflow=self.mission, via="a2a")
        return client, await tasks.see(client, self.mission, task_id)

    @_refusing
    async def on_message_send(self, params: pb.SendMessageRequest, context: ServerCallContext) -> pb.Task | pb.Message:
        client, seen = await self._taken(params, context)
        if not params.configuration.return_immediately:
            until = client.clock.boottime() + WAIT_SECONDS
            while seen.state not in tasks.RESTING and client.clock.boottime() < until:
                await client.clock.sleep(_GLANCE_SECONDS)
                seen = await tasks.see(client, self.mission, seen.record.record_id)
        return _task(seen)

    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any]:
        try:
            client, seen = await self._taken(params, context)
        except Exception as error:
            raise _refused(error) from error
        async for event in self._followed(client, seen):
            yield event

    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any]:
        try:
            client = self._at(context, Role.VIEWER)
            seen = await tasks.see(client, self.mission, params.id)
        except Exception as error:
            raise _refused(error) from error
        async for event in self._followed(client, seen):
            yield event

    async def _followed(self, client: Client, seen: Seen) -> AsyncGenerator[Any]:
        """The task, then what changes, until it rests. A listener that is cut off subscribes again: nothing is lost."""
        marks, said = await tasks.marks(client, seen), await tasks.said(client, seen)
        yield _task(seen, said=said)
        id_, context = seen.record.record_id, seen.context_id
        while seen.state not in tasks.RESTING:
            await client.clock.sleep(_GLANCE_SECONDS)
            before, seen = seen, await tasks.see(client, self.mission, seen.record.record_id)
            if (now := await tasks.marks(client, seen)) != marks:
                marks, known, said = now, set(said), await tasks.said(client, seen)
                for one in said:
                    if one not in known:
                        status = pb.TaskStatus(state=pb.TASK_STATE_WORKING, message=_message(seen, one))
                        yield pb.TaskStatusUpdateEvent(task_id=id_, context_id=context, status=status)
            if (before.state, before.record.step) != (seen.state, seen.record.step):
                for artifact in _artifacts(seen.record):
                    yield pb.TaskArtifactUpdateEvent(
                        task_id=id_, context_id=context, artifact=artifact, last_chunk=True
                    )
                yield pb.TaskStatusUpdateEvent(task_id=id_, context_id=context, status=_status(seen))

    async def on_create_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(self, params: Any, context: ServerCallContext) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> NoReturn:
        raise ExtendedAgentCardNotConfiguredError


class _Contexts(ServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        return ServerCallContext(state={"request": request, "headers": dict(request.headers)})


class OverHttp:
    """``/a2a/{mission}`` and its card, behind the server's gate."""

    def __init__(self, client: Client, groups: Mapping[str, Sequence[str]], audit: Callable[..., None]) -> None:
        self._client = client
        self._groups = groups
        self._audit = audit

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._answer(request, str(scope["path_params"]["mission"]))
        await response(scope, receive, send)

    async def _answer(self, request: Request, mission: str) -> Response:
        about = await mission_of(self._client, mission)
        if request.method == "GET":
            base = (self._client.public_url or str(request.base_url)).rstrip("/")
            made = card(mission, about, f"{base}/a2a/{mission}")
            return JSONResponse(json_format.MessageToDict(made))
        handler = Missions(mission, self._client, self._groups, self._audit)
        dispatcher = JsonRpcDispatcher(handler, context_builder=_Contexts())
        return await dispatcher.handle_requests(request)
