"""Answers to requests that compact their conversation, by the engine.

A provider that compacts conversations of the request's dialect does so itself. For any other, the
model that the request names summarises the conversation, and then answers it.
"""

from collections.abc import Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    ROLE_SYSTEM,
    ROLE_USER,
    Block,
    Message,
    Usage,
)
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    FALLBACK_MODE_DISABLED,
    FALLBACK_MODE_ENABLED,
    FALLBACK_MODE_STRICT,
    Choice,
    Compaction,
    Event,
    GenerateRequest,
    GenerateResponse,
    Prompt,
    Start,
)
from services.common import ids
from services.common.errors import GatewayError, UpstreamError, invalid
from services.common.grpc.authentication import caller_id
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.messages.sealed_summary import BESIDE, REPLACING
from services.common.messages.summary_prompt import build_prompt, fit_summary, without_thoughts
from services.inference.compaction.blocks import (
    compaction_block,
    events_of,
    finish_of,
    message_block,
)
from services.inference.compaction.fields import without_compaction
from services.inference.compaction.split import (
    Split,
    latest_of_user,
    split_before_answer,
    split_whole,
    with_latest,
)
from services.inference.compaction.transcript import earlier_summary, texts_of
from services.inference.compaction.usage import joint_usage
from services.inference.memory.split import uses_memory
from services.inference.offload import offload
from services.inference.plans.plan import Step
from services.inference.providers.base import compacts
from services.inference.request.estimate import estimate_input_tokens
from services.inference.request.request_changes import copied
from services.inference.run.engine import Engine
from services.inference.stream.batches import Batches
from services.inference.usage.request_usage import current_usage

TASK: Final = "compact"
# Path of the field that a model's provider does not support.
COMPACTION: Final = "compaction"
# Tokens of a summary, and of the user's latest messages beside it.
_MAX_SUMMARY: Final = 4_000
_MAX_LATEST: Final = 4_000
# Characters of the conversation that are summarised: of a model of unknown size, and at most and at
# least; and of each token of a model's context.
_SHOWN: Final = 200_000
_MOST_SHOWN: Final = 800_000
_LEAST_SHOWN: Final = 8_000
_SHOWN_RATE: Final = 2
# Input tokens at which a conversation is compacted, if the request names no number: of a model of
# unknown size, or a part of its context.
_THRESHOLD: Final = 100_000
_THRESHOLD_PART: Final = 0.75
_TRIGGER: Final = b"compaction_trigger"
_UNMOVED: Final = frozenset({"start", "usage", "finish", "unknown", "extra_fields", "continued"})

_CHAINS: Final = (FALLBACK_MODE_ENABLED, FALLBACK_MODE_STRICT)

Request = GenerateRequest | LazyRequest


class _Compacted(NamedTuple):
    """A conversation that has been summarised.

    Attributes:
        answer: the answer with the summary.
        blocks: what the caller's answer begins with.
        request: the request with the summary in its conversation.
    """

    answer: GenerateResponse
    blocks: list[Block]
    request: GenerateRequest


class CompactedAnswers:
    """An engine that compacts conversations.

    Args:
        engine: answers requests.
        new_id: makes the ids of items.
    """

    def __init__(self, engine: Engine, new_id: ids.IdGenerator = ids.new_id) -> None:
        self._engine = engine
        self._new_id = new_id

    async def answer(self, sent: Request) -> GenerateResponse | PassthroughAnswer:
        """Return a whole answer.

        Raises:
            GatewayError: as the engine; upstream_error, the model wrote no summary.
        """
        if self._is_native(sent):
            try:
                return await self._engine.answer(_without_rivals(sent))
            except GatewayError as error:
                if error.param != COMPACTION or self._is_native(sent):
                    raise
        request = await self._own(sent)
        done = await self._compact(request)
        if done is None:
            return await self._engine.answer(request)
        if _ends(request):
            return GenerateResponse(
                id=done.answer.id,
                model=done.answer.model,
                choices=[Choice(blocks=done.blocks, finish=finish_of(request.dialect))],
                usage=joint_usage(request.dialect, done.answer.usage, None),
                route=done.answer.route,
            )
        await _reserve(done)
        answer = await self._engine.generate(done.request)
        response = GenerateResponse()
        response.CopyFrom(answer)
        for choice in response.choices:
            blocks = list(choice.blocks)
            del choice.blocks[:]
            choice.blocks.extend([*done.blocks, *blocks])
        response.usage.CopyFrom(joint_usage(request.dialect, done.answer.usage, answer.usage))
        return response

    async def stream(self, sent: Request) -> Batches:
        """Return a streamed answer.

        Raises:
            GatewayError: as `answer`.
        """
        if self._is_native(sent):
            return await self._engine.stream(sent)
        request = await self._own(sent)
        done = await self._compact(request)
        if done is None:
            return await self._engine.stream(request)
        if _ends(request):
            return _whole_stream(done, request)
        await _reserve(done)
        return _joined(done, await self._engine.stream(done.request))

    def _is_native(self, sent: Request) -> bool:
        """Return whether the first model's provider compacts the conversation itself.

        A memory is summarised as it grows.
        """
        request = sent.request if isinstance(sent, LazyRequest) else sent
        if request.HasField("memory") and uses_memory(request):
            return True
        provider = self._engine.routes.providers_of(request.dialect)[
            self._first(request).target.adapter
        ]
        if provider.dialect != request.dialect:
            return False
        return request.compaction.mode != Compaction.MODE_ENDPOINT or compacts(provider)

    def _first(self, request: GenerateRequest) -> Step:
        return next(self._engine.plan_of(request).places())

    async def _own(self, sent: Request) -> GenerateRequest:
        """Return a request that the gateway compacts, without the fields that ask for it."""
        whole = await offload(sent.complete) if isinstance(sent, LazyRequest) else sent
        request = await offload(copied, whole)
        request.takes_passthrough = request.takes_passthrough and not request.HasField("compaction")
        fields = orjson.loads(request.extra.json) if request.extra.json else {}
        if fields:
            request.extra.json = orjson.dumps(without_compaction(fields))
        if request.messages and _is_trigger(request.messages[-1]):
            del request.messages[-1]
        await offload(self._engine.open_summaries, request)
        return request

    async def _compact(self, request: GenerateRequest) -> _Compacted | None:
        """Return a conversation that has been summarised; None if it is short.

        Raises:
            GatewayError: invalid, there is nothing to summarise.
        """
        target = self._first(request).target
        compaction = Compaction()
        compaction.CopyFrom(request.compaction)
        if compaction.mode == Compaction.MODE_THRESHOLD:
            threshold = (
                compaction.threshold_tokens
                or int(target.context_window * _THRESHOLD_PART)
                or _THRESHOLD
            )
            if await offload(estimate_input_tokens, request) < threshold:
                request.ClearField("compaction")
                return None
            split = split_before_answer(request.messages)
        else:
            split = split_whole(request.messages)
        if not split.replaced:
            if compaction.mode == Compaction.MODE_THRESHOLD:
                request.ClearField("compaction")
                return None
            raise invalid("messages", "messages: there is nothing to summarise")
        room = target.context_window * _SHOWN_RATE or _SHOWN
        shown = max(_LEAST_SHOWN, min(_MOST_SHOWN, room))
        answer, summary = await self._summarise(request, split, shown, compaction.instructions)
        return self._compacted(request, compaction, split, answer, summary)

    async def _summarise(
        self, request: GenerateRequest, split: Split, shown: int, rules: str
    ) -> tuple[GenerateResponse, str]:
        """Return the answer of the request's model with a summary, and the summary.

        Raises:
            GatewayError: as the engine; upstream_error, it wrote none.
        """
        prompt = await offload(
            lambda: build_prompt(
                earlier_summary(split.replaced),
                texts_of(split.replaced),
                max_tokens=_MAX_SUMMARY,
                max_shown=shown,
                rules=rules,
            )
        )
        is_alone = _ends(request)
        answer = await self._engine.generate(
            _request_of(prompt, request), task="" if is_alone else TASK
        )
        written = "".join(block.text for block in answer.choices[0].blocks)
        summary = fit_summary(without_thoughts(written), _MAX_SUMMARY)
        if not summary:
            raise UpstreamError(
                errors_pb2.REASON_UPSTREAM_ERROR,
                f"the provider {answer.route.provider} returned no summary",
            )
        return answer, summary

    def _compacted(
        self,
        request: GenerateRequest,
        compaction: Compaction,
        split: Split,
        answer: GenerateResponse,
        summary: str,
    ) -> _Compacted:
        latest = latest_of_user(split.replaced, _MAX_LATEST)
        lists_messages = compaction.mode == Compaction.MODE_ENDPOINT
        text = summary if lists_messages else with_latest(summary, latest)
        sealed = self._engine.sealer.seal(
            text, caller_id(), prefix=BESIDE if lists_messages else REPLACING
        )
        block = compaction_block(request.dialect, self._new_id("cmp_"), text, sealed)
        blocks = [block]
        if lists_messages:
            blocks = [*(message_block(self._new_id("msg_"), one) for one in latest), block]
        following = copied(request)
        following.ClearField("compaction")
        del following.messages[:]
        following.messages.extend(split.with_summary(text))
        return _Compacted(answer, blocks, following)


def _ends(request: GenerateRequest) -> bool:
    """Return whether the answer to a request is its compaction alone."""
    return request.compaction.mode != Compaction.MODE_THRESHOLD or request.compaction.pauses


def _without_rivals(sent: Request) -> Request:
    """Return a request for an endpoint that no other model answers meanwhile."""
    if isinstance(sent, LazyRequest) or sent.compaction.mode != Compaction.MODE_ENDPOINT:
        return sent
    if sent.fallback in _CHAINS:
        return sent
    alone = copied(sent)
    alone.fallback = FALLBACK_MODE_DISABLED
    return alone


def _is_trigger(message: Message) -> bool:
    return all(_TRIGGER in block.opaque.json for block in message.blocks)


def _request_of(prompt: Prompt, request: GenerateRequest) -> GenerateRequest:
    """Return the request for a summary, with the models of another request."""
    summarising = GenerateRequest(
        model=request.model,
        messages=[
            Message(role=ROLE_SYSTEM, blocks=[Block(text=prompt.instructions)]),
            Message(role=ROLE_USER, blocks=[Block(text=prompt.input)]),
        ],
        max_tokens=prompt.max_tokens,
        lowers_max_tokens=True,
        fallback=request.fallback,
        end_user=request.end_user,
        service_tier=request.service_tier,
    )
    if request.HasField("fallback_config"):
        summarising.fallback_config.CopyFrom(request.fallback_config)
        for step in summarising.fallback_config.steps:
            step.ClearField("parameters")
    return summarising


async def _reserve(done: _Compacted) -> None:
    """Reserve what the answer needs beside its summary.

    Raises:
        GatewayError: the caller's limits do not allow it.
    """
    usage = current_usage.get(None)
    if usage is None or usage.extend is None:
        return
    before = done.answer.usage
    read = await offload(estimate_input_tokens, done.request)
    await usage.extend(before.input_tokens + read, before.output_tokens)


async def _whole_stream(done: _Compacted, request: GenerateRequest) -> Batches:
    """Yield the events of an answer that is a compaction alone."""
    answer = done.answer
    events = [Event(start=Start(id=answer.id, model=answer.model, route=answer.route))]
    for number, block in enumerate(done.blocks):
        events += _numbered(events_of(block), number)
    usage = joint_usage(request.dialect, answer.usage, None)
    events += [Event(usage=usage), Event(finish=finish_of(request.dialect))]
    yield events


async def _joined(done: _Compacted, batches: Batches) -> Batches:
    """Yield the events of an answer after those of the compaction."""
    opening: list[Event] = []
    for number, block in enumerate(done.blocks):
        opening += _numbered(events_of(block), number)
    offset, join = len(done.blocks), partial(joint_usage, done.request.dialect, done.answer.usage)
    async with aclosing(batches):
        async for batch in batches:
            events: list[Event] = []
            for event in batch:
                events.append(_moved(event, offset, join))
                if event.HasField("start"):
                    events += opening
            if events:
                yield events


def _numbered(events: Iterable[Event], number: int) -> list[Event]:
    numbered = list(events)
    for event in numbered:
        event.block = number
    return numbered


def _moved(event: Event, offset: int, join: Callable[[Usage], Usage]) -> Event:
    """Return an event after `offset` blocks; `join` adds the usage of the summary."""
    kind = event.WhichOneof("kind")
    if kind == "usage":
        return Event(usage=join(event.usage))
    if kind in _UNMOVED:
        return event
    moved = Event()
    moved.CopyFrom(event)
    moved.block += offset
    return moved
