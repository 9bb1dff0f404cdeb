"""Protocol of the factory of attempts, and the attempt that has begun to answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.passed_answer import PassedAnswer
from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.fallback.attempt_log import AttemptRecord
from services.inference.plans.plan import Step
from services.inference.stream.batches import Batches
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.filters import Batch

# Called once, when the first content of an answer has come.
OnFirstContent = Callable[[], None]


def ignore_first_content() -> None:
    """Do nothing when the first content comes."""


@dataclass(slots=True)
class AttemptOptions:
    """How an attempt is made.

    Attributes:
        stream: whether the provider is to answer as a stream.
        discards_thinking: whether the thinking in the conversation is left out.
        delivered: what of the answer has gone out already, if any.
        refused_fields: what the model has refused, names of `services.inference.refusals`.
    """

    stream: bool
    discards_thinking: bool = False
    delivered: DeliveredPrefix | None = None
    refused_fields: frozenset[str] = frozenset()


class AttemptFactory(Protocol):
    """Makes attempts at one request."""

    def may_convert(self, step: Step) -> bool:
        """Return whether media may have to be converted before a step's model is asked."""

    async def adapt(self, step: Step) -> None:
        """Convert what a step's model does not read, unless that was done before.

        Raises:
            AdaptationError: a medium cannot be converted.
        """

    def converts(self, step: Step, field: str) -> bool:
        """Return whether a step's model can be asked without a medium that it refuses."""

    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt | None:
        """Return a first attempt that is made of the request as its caller wrote it.

        None where the request has to be prepared for the step's model.
        """

    def attempt(self, step: Step, options: AttemptOptions) -> tuple[Attempt, bool]:
        """Make an attempt; return whether it asks the model to continue what was delivered.

        Raises:
            GatewayError: the model cannot carry the request.
        """

    def refused(self, step: Step) -> frozenset[str]:
        """Return what a step's model refuses, names of `services.inference.refusals`."""

    def learn_refusal(self, key: ModelKey, name: str) -> None:
        """Remember that a model refuses a field, or PREFILL."""


class StartedAnswer:
    """An answer whose first content has come; of a whole answer, everything.

    Attributes:
        index: of the step in the plan.
        attempt: what was asked.
        record: of the attempt.
        head: the batches that have come.
        batches: those that are still to come; None where the answer came whole.
        answer: the whole answer in place of batches, where it goes to the caller as it is, or was
            put together from a stream.
    """

    __slots__ = ("answer", "attempt", "batches", "head", "index", "record")

    def __init__(
        self,
        index: int,
        attempt: Attempt,
        record: AttemptRecord,
        head: list[Batch],
        batches: Batches | None = None,
        answer: GenerateResponse | PassedAnswer | None = None,
    ) -> None:
        self.index = index
        self.attempt = attempt
        self.record = record
        self.head = head
        self.batches = batches
        self.answer = answer

    async def close(self) -> None:
        """End the answer at the provider, if it has not ended."""
        self.record.cancelled()
        if self.batches is not None:
            await self.batches.aclose()
