"""Receipts for an agent: every answer of its model and every call of a tool is kept, and never asked for twice.

A capability of pydantic-ai, for one conversation within one run. Before each model call an intent is committed, which a
halt refuses and a rate delays; the answer, or the error, is a receipt. Tools that were approved by a person are done at
most once (``run.once``); others may be repeated (``run.call``). Questions to people become ``run.ask``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.capabilities.abstract import AbstractCapability
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition, ToolDenied
from pydantic_core import to_jsonable_python

from quire.agents import history
from quire.agents.acting import scope
from quire.agents.begun import begin
from quire.agents.correction import CutOff, Fault, Refused, Tries, classified
from quire.agents.missions import daily as days
from quire.agents.missions.recording import Recording
from quire.agents.people import put
from quire.agents.secrets import blacked_out, harmless, without_keys
from quire.agents.spend import LimitReached, Meter, Spend, amount, of_row
from quire.clock import Span, iso
from quire.model.change import Rate
from quire.run.run import Run, behind
from quire.workflows.effect import Effect

#: The name of the tool with which an agent asks a person.
ASK_PERSON = "ask_person"


class Reply:
    """A named call: its receipt is found by ``__name__``, whatever the order in which others are made."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    async def __call__(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        return await make()


class ToolReply(Reply):
    """The same for a tool that may be repeated."""

    async def __call__(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        return await make()


class ToolAct:
    """A tool that is done at most once. What it gets is kept with its intent."""

    def __init__(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        self._make = make

    async def __call__(self, tool: str, args: Any) -> dict[str, Any]:
        return await self._make()


async def _permit() -> None:
    """Do nothing: what counts is that the intent was committed. Receipts are known by this function's path."""


class Receipts(AbstractCapability[Any]):
    """Makes one conversation of an agent durable: ``agent.run(prompt, capabilities=[Receipts(run, "triage")])``."""

    def __init__(
        self,
        run: Run[Any, Any],
        name: str = "agent",
        *,
        who: str = "",
        approver: str | None = None,
        expires: Span | None = None,
        rate: Rate | None = None,
        daybook: days.Daybook | None = None,
        retries: int = 4,
        tries: Tries | None = None,
        meter: Meter | None = None,
        at_limit: Callable[[LimitReached], Awaitable[None]] | None = None,
        at_refusal: Callable[[Refused], Awaitable[None]] | None = None,
        price: Mapping[str, float] | None = None,
        timeout: Span = "2m",
        stream: bool = False,
        recording: Recording | None = None,
    ) -> None:
        super().__init__()
        self.run = run
        #: Receipts are found by it: it is the same whenever the step is repeated.
        self.name = name
        #: What people read.
        self.who = who or name
        self.approver = approver
        self.expires = expires
        self.rate = rate
        self.daybook = daybook
        self.tries = tries or Tries(retries)
        self.meter = meter or Meter()
        self.at_limit = at_limit
        self.at_refusal = at_refusal
        self.price = price
        self.timeout = timeout
        self.stream = stream
        self.recording = recording
        #: The messages of the request that was made last, or was about to be made.
        self.messages: list[ModelMessage] = []
        #: What tools that act by themselves have done in it.
        self.conversation = scope.Conversation()
        self._requests = 0
        #: What this conversation cost, by day.
        self._by_day: dict[str, Spend] = {}

    # -- what the library asks ---------------------------------------------------------------------------------------

    def get_default_run_id(self) -> str | None:
        return f"{self.run.record_id}:{self.name}"

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return run_id

    def get_wrapper_model(self, model: Model) -> Model | None:
        return None if isinstance(model, _ModelWithReceipts) else _ModelWithReceipts(model, self)

    # -- model calls -------------------------------------------------------------------------------------------------

    async def answered(
        self,
        model: Model,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The model's answer: from its receipt, or asked for now; after a passing error the same again, later."""
        self._requests += 1
        number = self._requests
        self.messages = list(messages)
        digest = history.digest(messages, parameters.instruction_parts)
        attempt = 0
        while True:
            attempt += 1
            name = f"{self.name} {number}.{attempt}"
            await self._within_limits()
            row = await self._asked(name, digest, model, messages, settings, parameters)
            if "limit" in row:
                await self._limit(LimitReached(row["limit"], row["text"]))
                continue
            self.meter.add(row)
            await self._entered(row)
            if "error" not in row:
                if row.get("usd") is None:
                    self.meter.check()
                [response] = history.loaded(row["reply"])
                assert isinstance(response, ModelResponse)
                return response
            fault = Fault.model_validate(row["error"])
            if fault.kind == "safety":
                await self._refused(Refused(fault))
                continue
            self.tries.failed(fault)
            if self.recording is None:
                await self.run.sleep(self.tries.delay(fault))

    async def _within_limits(self) -> None:
        while True:
            try:
                return self.meter.check()
            except LimitReached as reached:
                await self._limit(reached)

    async def _day_is_spent(self) -> dict[str, Any] | None:
        limits = days.limits_of(self.meter.allowance)
        if self.daybook is None or not limits:
            return None
        spent = Spend.model_validate(await self.daybook.today())
        word = days.reached(limits, spent)
        if word is None:
            return None
        kind = days.WORDS[word]
        text = f"{amount(kind, getattr(spent, kind))} are spent today of {amount(kind, limits[word])} a day"
        return {"limit": word, "text": text}

    async def _entered(self, row: Mapping[str, Any]) -> None:
        """Count an answer for its day. From its receipt again, it comes to the same figure."""
        if self.daybook is None:
            return
        day = days.day_of(row["began"])
        self._by_day[day] = self._by_day.get(day, Spend()).plus(of_row(row))
        if await self.daybook.is_kept(day):
            name = days.conversation(self.run.record_id, self.run.visit, self.name)
            await self.daybook.enter(name, day, self._by_day[day])

    async def _limit(self, reached: LimitReached) -> None:
        if self.at_limit is None:
            raise reached
        await self.at_limit(reached)

    async def _refused(self, refused: Refused) -> None:
        if self.at_refusal is None:
            raise refused
        await self.at_refusal(refused)

    async def _asked(self, name: str, digest: str, model: Model, messages: Any, settings: Any, parameters: Any) -> Any:
        lost = 0

        async def make() -> dict[str, Any]:
            if self.recording is not None and (row := self.recording.answer(name, digest)) is not None:
                return dict(row)
            clock = behind(self.run).now
            began = clock()
            if (until := self.meter.until) is not None and began >= until:
                return {"limit": "wall", "text": f"its time ended at {iso(until)}"}
            if (spent := await self._day_is_spent()) is not None:
                return spent
            keeper = self.recording.keeper if self.recording is not None else None
            if keeper is not None:
                await keeper.begins(name, began)
            made = await self._made(model, messages, settings, parameters)
            if "error" in made and made["error"]["kind"] != "safety" and self.tries.is_last:
                # Not kept: when a person tries the record again, this is what is done again.
                self.tries.failed(Fault.model_validate(made["error"]))
            row = {**made, "asked": digest, "began": began, "ended": clock()}
            if keeper is not None:
                await keeper.answers(name, row)
            return {**row, "lost": lost} if lost else row

        if self.recording is None:
            lost = await begin(self.run, name, _permit, _seconds(self.timeout), self.rate)
        return await self.run.call(Reply(name), make)

    async def _made(self, model: Model, messages: Any, settings: Any, parameters: Any) -> dict[str, Any]:
        """Ask the model. The answer as a row; an error of the model's is an answer too."""
        try:
            async with asyncio.timeout(_seconds(self.timeout)):
                response = await self._response(model, messages, settings, parameters)
        except Exception as error:  # noqa: BLE001 - whatever it is, it goes on without a key in its words
            fault = classified(error)
            if fault is None:
                raise harmless(error) from None
            return {"error": fault.model_dump(exclude_none=True)}
        row: dict[str, Any] = {
            "usage": {"in": response.usage.input_tokens, "out": response.usage.output_tokens},
            "usd": self._usd(response, model),
            "model": response.model_name or model.model_name,
        }
        if response.finish_reason == "content_filter":
            details = response.provider_details or {}
            why = details.get("refusal") or details.get("finish_reason") or details.get("block_reason") or "no reason"
            text = blacked_out(f"the answer was withheld: {why}")
            return {**row, "error": Fault(kind="safety", type="ContentFilter", text=text).model_dump(exclude_none=True)}
        return {**row, "reply": without_keys(history.dumped([response]))}

    async def _response(self, model: Model, messages: Any, settings: Any, parameters: Any) -> ModelResponse:
        if not self.stream:
            return await model.request(messages, settings, parameters)
        async with model.request_stream(messages, settings, parameters) as streamed:
            async for _ in streamed:
                pass
            response = streamed.get()
        # A line that is closed in the middle of an answer looks like its end; only the provider's word for it does not.
        ended = (response.provider_details or {}).get("finish_reason") is not None
        if response.state == "incomplete" or not (ended or model.system in ("function", "test")):
            raise CutOff("the answer broke off before its end")
        return response

    def _usd(self, response: ModelResponse, model: Model) -> float | None:
        usage = response.usage
        if self.price is not None:
            cost = usage.input_tokens * self.price["input"] + usage.output_tokens * self.price["output"]
            return round(cost / 1_000_000, 9)
        if usage.cost is not None:
            return float(usage.cost)
        if model.system in ("function", "test"):
            return 0.0
        try:
            return round(float(response.cost().total_price), 9)
        except (LookupError, ValueError, AssertionError):
            return None

    # -- tools -------------------------------------------------------------------------------------------------------

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        async def make() -> dict[str, Any]:
            return await _tool_row(handler, args)

        name = f"{self.name} {self._requests} tool {call.tool_name} {call.tool_call_id}"
        if self.recording is not None and not self.recording.live(name):
            return _tool_value(self.recording.answer(name))
        if (tool_def.metadata or {}).get(scope.DURABLE):
            with scope.within(self, name):
                return await handler(args)
        if tool_def.kind == "unapproved" or ctx.tool_call_approved:
            act: Effect[[str, Any], dict[str, Any], Any] = Effect(
                act=ToolAct(make),  # type: ignore[arg-type]  # bare: it takes its arguments only
                name=name,
                bare=True,
            )
            row = await self.run.once(act, call.tool_name, to_jsonable_python(args, fallback=str))
        else:
            row = await self.run.call(ToolReply(name), make)
        return _tool_value(row)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask people what the agent's tools wait for."""
        asking = [self._approval(call) for call in requests.approvals]
        putting = [self._question(call) for call in requests.calls if call.tool_name == ASK_PERSON]
        answers = await asyncio.gather(*asking, *putting)
        approvals = dict(answers[: len(asking)])
        return DeferredToolResults(approvals=approvals, calls=dict(answers[len(asking) :]))

    async def _approval(self, call: ToolCallPart) -> tuple[str, Any]:
        args = call.args_as_dict()
        shown = ", ".join(f"{word}={value!r}" for word, value in args.items())
        answer = await put(
            self.run,
            self.recording,
            f"May {self.who} do {call.tool_name}({shown[:300]})?",
            show={"tool": call.tool_name, "args": to_jsonable_python(args, fallback=str)},
            by=self.approver,
            expires=self.expires,
        )
        if answer:
            return call.tool_call_id, True
        why = f": {answer.note}" if answer.note else ""
        who = f"{answer.by} said no" if answer.by else "nobody approved it in time"
        return call.tool_call_id, ToolDenied(f"It was not done; {who}{why}.")

    async def _question(self, call: ToolCallPart) -> tuple[str, Any]:
        args = call.args_as_dict()
        choices = [str(choice) for choice in args.get("choices") or []] or ["answer"]
        answer = await put(
            self.run,
            self.recording,
            f"{self.who} asks: {args.get('question', '')}",
            show={"context": args.get("context", "")},
            choices=choices,
            by=self.approver,
            expires=self.expires,
        )
        return call.tool_call_id, {"choice": answer.choice, "text": answer.note, "by": answer.by}


async def _tool_row(handler: Callable[[dict[str, Any]], Awaitable[Any]], args: dict[str, Any]) -> dict[str, Any]:
    try:
        value = await handler(args)
    except (ModelRetry, ToolRetryError) as error:
        return {"retry": blacked_out(str(error))}
    except (ToolFailed, ToolFailedError) as error:
        return {"failed": blacked_out(str(error))}
    except (ApprovalRequired, CallDeferred):
        raise
    return {"value": without_keys(to_jsonable_python(value, fallback=str))}


def _tool_value(row: Any) -> Any:
    if "retry" in row:
        raise ModelRetry(row["retry"])
    if "failed" in row:
        raise ToolFailed(row["failed"])
    return row["value"]


def _seconds(span: Span) -> float:
    from quire.clock import seconds

    return seconds(span)


class _ModelWithReceipts(WrapperModel):
    """Puts the receipts before a model."""

    def __init__(self, wrapped: Model, receipts: Receipts) -> None:
        super().__init__(wrapped)
        self._receipts = receipts

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return await self._receipts.answered(self.wrapped, messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)
