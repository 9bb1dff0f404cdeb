"""The tool loop: repeat requests to the model until it stops calling gateway tools.

Each round runs a plan with its retries and fallbacks. Calls of gateway tools are run and the model
continues with their results, for at most 8 rounds; in the last round no gateway tools are offered.
Calls of the caller's tools end the answer, after the gateway tools of the same round have run.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    FinishReason,
    Message,
    ServerToolResult,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import BlockStop, Choice, Event, Finish, WebTool
from services.common.ids import new_server_call_id
from services.common.text.tokens import estimate_tokens
from services.inference.fallback.run import RetryBudget
from services.inference.fallback.runner import FallbackRunner
from services.inference.metrics import InferenceMetrics
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import out_of_time
from services.inference.request.estimate import estimate_messages
from services.inference.stream.batches import Batches
from services.inference.stream.filters import Batch
from services.inference.tools.citations import CitationWriter
from services.inference.tools.history import addresses_in
from services.inference.tools.round import Round
from services.inference.tools.rounds import Progress, Rounds
from services.inference.tools.running import WebTools
from services.inference.tools.usage import add_usage

MAX_ROUNDS = 8
# Maximum calls run per round; further calls get an error result.
MAX_CALLS = 8

# Creates the fallback runner of a round from a plan and the remaining retry budget.
StartRunner = Callable[[Plan, RetryBudget | None], FallbackRunner]


class ToolLoop:
    """Runs the rounds of one answer.

    Args:
        plan: the fallback plan.
        rounds: builds the requests of the rounds.
        start_runner: creates the fallback runner of a round.
        tools: runs tool calls.
        metrics: counts rounds and calls.
        on_end: called once, when the answer has ended.
        extend: reserves more tokens and money before a further round, for all input tokens so far
            and for the output tokens of the rounds before; None if nothing is reserved.
        whole: whether rounds are not streamed.
    """

    def __init__(
        self,
        plan: Plan,
        rounds: Rounds,
        start_runner: StartRunner,
        tools: WebTools,
        metrics: InferenceMetrics,
        on_end: Callable[[], None],
        extend: Callable[[int, int], Awaitable[None]] | None = None,
        *,
        whole: bool,
    ) -> None:
        self._extend = extend
        self._plan = plan
        self._rounds = rounds
        self._start_runner = start_runner
        self._tools = tools
        self._metrics = metrics
        self._on_end = on_end
        self._whole = whole
        self._citations = CitationWriter(joins_texts=rounds.joins_texts)
        self._budget: RetryBudget | None = None
        self._offset = 0  # blocks sent so far
        self._usage = Usage()
        self._written = 0  # tokens
        self._used: dict[str, int] = {}  # calls by tool

    async def batches(self) -> Batches:
        """Yield the events of the answer; closing the iterator cancels running calls.

        Raises:
            GatewayError: no model answered a round, or an answer broke off.
        """
        messages: list[Message] = []
        number = 1
        try:
            while True:
                is_last = number == MAX_ROUNDS
                self._rounds.progress = Progress(tuple(messages), self._written, is_last)
                runner = self._start_runner(self._plan, self._budget)
                round_ = self._round(runner, is_first=number == 1)
                async with aclosing(self._run(runner, round_)) as batches:
                    async for batch in batches:
                        yield self._citations.follow(batch)
                self._budget = runner.budget
                self._offset += len(round_.choice.blocks)
                message = _message(round_.choice)
                written = round_.usage.output_tokens - self._usage.output_tokens
                self._written += written or _written_in(message)
                self._usage = round_.usage
                calls = round_.calls()
                async with aclosing(self._results(calls, runner, is_last)) as results:
                    async for result in results:
                        message.blocks.add(server_tool_result=result)
                        self._citations.add_result(result)
                        yield self._result_events(result)
                end = self._end(round_, calls, runner.serving, is_last)
                if end is not None:
                    yield [end, Event(usage=self._usage)]
                    return
                if self._extend is not None and runner.serving is not None:
                    context_messages = (*self._rounds.seen(runner.serving), message)
                    await self._extend(
                        _read_in(self._usage) + estimate_messages(context_messages), self._written
                    )
                messages.append(message)
                self._go_on_from(runner.serving)
                number += 1
        finally:
            self._metrics.tool_rounds.observe(number)
            self._on_end()

    def _round(self, runner: FallbackRunner, *, is_first: bool) -> Round:
        def is_own(name: str) -> bool:
            step = runner.serving
            return step is not None and name in self._rounds.offered(step)

        return Round(
            is_first=is_first,
            offset=self._offset,
            before=self._usage,
            is_own=is_own,
            new_id=new_server_call_id,
        )

    async def _run(self, runner: FallbackRunner, round_: Round) -> Batches:
        """Yield the outgoing events of a round."""
        if self._whole:
            for batch in await runner.whole_batches():
                yield round_.feed(batch)
            return
        async with aclosing(runner.stream()) as batches:
            async for batch in batches:
                if outgoing := round_.feed(batch):
                    yield outgoing

    def _end(
        self, round_: Round, calls: Sequence[ToolUse], step: Step | None, is_last: bool
    ) -> Event | None:
        """Return the event that ends the answer after a round, or None if it continues."""
        if not calls or step is None:
            return round_.end
        if round_.calls_others():
            if round_.end.finish.reason == conversation_pb2.FINISH_REASON_TOOL_USE:
                return round_.end
            return _finish(conversation_pb2.FINISH_REASON_TOOL_USE)
        if is_last:
            # Gateway tools were no longer offered. The caller can continue by sending the answer
            # back.
            return _finish(conversation_pb2.FINISH_REASON_PAUSE_TURN)
        if self._rounds.tokens_left(step, self._written) == 0:
            return _finish(conversation_pb2.FINISH_REASON_MAX_TOKENS)
        return None

    def _go_on_from(self, step: Step | None) -> None:
        """Drop the steps before the one that answered: the next round starts with it."""
        steps = self._plan.steps
        for index, one in enumerate(steps):
            if one is step:
                self._plan = self._plan._replace(steps=steps[index:])
                return

    async def _results(
        self, calls: Sequence[ToolUse], runner: FallbackRunner, is_last: bool
    ) -> AsyncGenerator[ServerToolResult, None]:
        """Yield the results of calls in order, as early as possible.

        Raises:
            GatewayError: the time limit of the plan has passed.
        """
        if not calls or runner.serving is None:
            return
        offered = self._rounds.offered(runner.serving)
        conversation = self._rounds.seen(runner.serving)
        is_known = partial(addresses_in, conversation)
        running: list[asyncio.Task[ServerToolResult] | ServerToolResult] = []
        for number, call in enumerate(calls):
            code = "max_uses_exceeded" if is_last else self._refusal(call, offered, number)
            if code:
                running.append(self._tools.refuse(call, code))
            else:
                run = self._tools.run(call, offered[call.name], is_known)
                running.append(asyncio.create_task(run))
        tasks = [
            call_or_result for call_or_result in running if isinstance(call_or_result, asyncio.Task)
        ]
        deadline = None if self._budget is None else self._budget.deadline
        try:
            for call_or_result in running:
                if isinstance(call_or_result, asyncio.Task):
                    try:
                        async with asyncio.timeout_at(deadline):
                            result = await call_or_result
                    except TimeoutError:
                        raise out_of_time() from None
                else:
                    result = call_or_result
                self._count(result)
                yield result
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _refusal(self, call: ToolUse, offered: Mapping[str, WebTool], number: int) -> str:
        """Return the error code for a call that must not run, else ""."""
        used = self._used.get(call.name, 0)
        tool = offered.get(call.name)
        if tool is None:
            # The model has no such tool and continues the answer of a model that has it.
            return "unavailable"
        if tool.HasField("max_uses") and used >= tool.max_uses:
            return "max_uses_exceeded"
        if number >= MAX_CALLS:
            return "too_many_requests"
        self._used[call.name] = used + 1
        return ""

    def _count(self, result: ServerToolResult) -> None:
        kind = result.WhichOneof("kind")
        self._usage = add_usage(
            self._usage,
            Usage(
                web_search_requests=int(kind == "search"), web_fetch_requests=int(kind == "page")
            ),
        )

    def _result_events(self, result: ServerToolResult) -> Batch:
        number = self._offset
        self._offset += 1
        return [
            Event(block=number, block_start=Block(server_tool_result=result)),
            Event(block=number, block_stop=BlockStop()),
            Event(usage=self._usage),
        ]


def _finish(reason: FinishReason.ValueType) -> Event:
    return Event(finish=Finish(reason=reason))


def _message(choice: Choice) -> Message:
    """Return a model's output as a message of the conversation."""
    message = Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=choice.blocks)
    if choice.HasField("extra"):
        message.extra.CopyFrom(choice.extra)
    return message


def _read_in(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def _written_in(message: Message) -> int:
    """Estimate the tokens of a message whose provider does not count them."""
    return sum(
        estimate_tokens(block.text or block.thinking.text or block.server_tool_use.input)
        for block in message.blocks
    )
