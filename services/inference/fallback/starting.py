"""Starts an attempt: from the request to the first content, within the timeout of its step."""

from collections.abc import Callable, Sequence

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.passthrough_answer import PassthroughAnswer, Route
from services.common.process.timer_wheel import Deadline
from services.common.text.tokens import estimate_bytes, estimate_tokens
from services.inference.attempt import Attempt
from services.inference.fallback.attempt_log import AttemptRecord, DeploymentRecord
from services.inference.fallback.run_context import RunContext
from services.inference.plans.policy import out_of_time
from services.inference.providers.failures import cut_off
from services.inference.stream.accumulator import Accumulator, whole_of
from services.inference.stream.batches import Batches
from services.inference.stream.content import has_content
from services.inference.stream.filters import Batch

# Called once, when the first content of an answer has arrived.
OnFirstContent = Callable[[], None]


def ignore_first_content() -> None:
    """Do nothing at the first content."""


class StartedAnswer:
    """An answer whose first content has arrived; a whole answer is complete.

    Attributes:
        index: index of the step in the plan.
        attempt: the attempt.
        record: the record of the attempt.
        head: the batches up to the first content.
        batches: the remaining batches; None for a whole answer that was not streamed.
        answer: the whole answer instead of batches, if it is passed through or was accumulated
            from a stream; else None.
    """

    __slots__ = ("answer", "attempt", "batches", "head", "index", "record")

    def __init__(
        self,
        index: int,
        attempt: Attempt,
        record: AttemptRecord,
        head: list[Batch],
        batches: Batches | None = None,
        answer: GenerateResponse | PassthroughAnswer | None = None,
    ) -> None:
        self.index = index
        self.attempt = attempt
        self.record = record
        self.head = head
        self.batches = batches
        self.answer = answer

    async def close(self) -> None:
        """Cancel the provider's call, if it has not ended."""
        self.record.cancelled()
        if self.batches is not None:
            await self.batches.aclose()


async def start_attempt(
    context: RunContext,
    index: int,
    attempt: Attempt,
    record: AttemptRecord,
    deadline: float,
    on_first_content: OnFirstContent,
) -> StartedAnswer:
    """Call a provider; return its answer once the first content has arrived.

    Args:
        context: the context of the run.
        index: index of the step in the plan.
        attempt: the attempt.
        record: the record of the attempt; a failure is recorded in it.
        deadline: deadline of the first content, by the loop's clock.
        on_first_content: called at the first content.

    Raises:
        UpstreamError: the provider failed, or sent no content in time.
        GatewayError: the provider does not support the request, or the plan's time is over.
    """
    provider = context.plan.steps[index].target.provider
    batches: Batches | None = None
    whole: GenerateResponse | PassthroughAnswer | None = None
    head: list[Batch] = []
    record.attempt = attempt
    try:
        try:
            with Deadline(context.timers, deadline):
                if attempt.stream:
                    batches = attempt.batches()
                    if context.whole:
                        whole = await _read_whole(attempt, batches, record, on_first_content)
                        if whole is None:
                            raise cut_off(provider)
                        await batches.aclose()
                    else:
                        head = await _read_head(attempt, batches, record, on_first_content)
                        if not head:
                            raise cut_off(provider)
                else:
                    answer = await attempt.whole()
                    if isinstance(answer, PassthroughAnswer):
                        whole, attempt.usage = answer, answer.usage
                    else:
                        head = [_content(attempt.apply_filters(answer), provider)]
                    record.started()
                    on_first_content()
                    record.served()
        except TimeoutError:
            raise _late(context, provider, deadline) from None
        except UpstreamError as error:
            attempt.add_head(error)
            if isinstance(record, DeploymentRecord):
                record.set_headers(attempt.answer_headers)
            raise
        if isinstance(record, DeploymentRecord):
            record.answers(attempt.answer_headers)
        _describe(context, index, attempt, head[0] if whole is None else whole)
        _estimate_missing_usage(record, attempt, head if whole is None else whole)
    except BaseException as error:
        record.ended_by(error)
        if batches is not None:
            await batches.aclose()
        raise
    return StartedAnswer(index, attempt, record, head, batches, whole)


async def _read_head(
    attempt: Attempt, batches: Batches, record: AttemptRecord, on_first_content: OnFirstContent
) -> list[Batch]:
    """Return the batches up to the first content; [] without content."""
    head: list[Batch] = []
    async for read in batches:
        batch = attempt.apply_filters(read)
        if not batch:
            continue
        if has_content(batch):
            record.started()
            on_first_content()
            return [*head, batch]
        _add_announcement(batch, head)
        if attempt.is_done:
            break
    return []


async def _read_whole(
    attempt: Attempt, batches: Batches, record: AttemptRecord, on_first_content: OnFirstContent
) -> GenerateResponse | None:
    """Read a stream to its end; return the whole answer, or None without content.

    The events are accumulated as they arrive: they take many times the memory of their content.
    """
    answer = Accumulator()
    has_started = False
    async for read in batches:
        batch = attempt.apply_filters(read)
        if not batch:
            continue
        if not has_started and has_content(batch):
            has_started = True
            record.started()
            on_first_content()
        answer.add(batch)
        if attempt.is_done:
            break
    if not has_started:
        return None
    record.served()
    return answer.response()


def _add_announcement(batch: Batch, head: list[Batch]) -> None:
    """Add a batch before the first content to `head`; of usage events only the last is kept."""
    if head and all(event.HasField("usage") for event in batch):
        if len(head) > 1 and head[-1][0].HasField("usage"):
            head.pop()
        head.append(batch[-1:])
    else:
        head.append(batch)


def _content(batch: Batch, provider: str) -> Batch:
    """Return a whole answer unchanged.

    Raises:
        UpstreamError: the answer has no content.
    """
    if not has_content(batch):
        raise cut_off(provider)
    return batch


def _estimate_missing_usage(
    record: AttemptRecord,
    attempt: Attempt,
    answer: Sequence[Batch] | GenerateResponse | PassthroughAnswer,
) -> None:
    """Estimate the output tokens of a whole answer, if its provider has reported no usage."""
    if record.outcome != "served" or attempt.usage is not None:
        return
    if isinstance(answer, PassthroughAnswer):
        record.delivered_tokens = estimate_bytes(answer.passthrough)
        return
    if not isinstance(answer, GenerateResponse):
        answer = whole_of(answer)
    record.delivered_tokens = sum(
        estimate_tokens(block.text)
        + estimate_tokens(block.thinking.text)
        + estimate_tokens(block.tool_use.input)
        for choice in answer.choices
        for block in choice.blocks
    )


def _describe(
    context: RunContext,
    index: int,
    attempt: Attempt,
    begun: Batch | GenerateResponse | PassthroughAnswer,
) -> None:
    """Set the route of an answer, or of the first batch of one."""
    if isinstance(begun, PassthroughAnswer):
        begun.route = _route(context, index, attempt)
        return
    if isinstance(begun, GenerateResponse):
        begun.route.CopyFrom(_route(context, index, attempt).message())
        return
    first = begun[0]
    kind = first.WhichOneof("kind")
    if kind == "start" or kind == "whole":
        answer = getattr(first, kind)
        if kind == "whole" and answer.HasField("usage"):
            attempt.usage = answer.usage
        answer.route.CopyFrom(_route(context, index, attempt).message())


def _route(context: RunContext, index: int, attempt: Attempt) -> Route:
    """Return the route of an answer, with the attempts that failed before."""
    step_id = context.plan.steps[index].step_id
    if len(context.records) == 1:
        return attempt.route(step_id, 1)
    route = attempt.route(step_id, context.attempts_made())
    route.failed_attempts = context.failed_attempts()
    return route


def _late(context: RunContext, provider: str, deadline: float) -> GatewayError:
    if deadline == context.budget.deadline:
        return out_of_time()
    return UpstreamError(
        errors_pb2.REASON_UPSTREAM_TIMEOUT,
        f"the provider {provider} did not answer within the time limit",
    )
