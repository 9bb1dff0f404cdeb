"""Protocol of the factory of attempts, and the factory of requests without a conversation."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.plans.plan import Step
from services.inference.stream.delivered import DeliveredPrefix


@dataclass(slots=True)
class AttemptOptions:
    """Options of an attempt.

    Attributes:
        stream: whether the provider streams the answer.
        discards_thinking: whether thinking is removed from the conversation.
        delivered: the part of the answer that the caller already has, or None.
        refused_fields: fields that the model rejects, as named by
            `services.inference.learned.refusals`.
        output_room: the largest `max_tokens` that fits into the context beside the prompt; 0 if
            unknown.
    """

    stream: bool
    discards_thinking: bool = False
    delivered: DeliveredPrefix | None = None
    refused_fields: frozenset[str] = frozenset()
    output_room: int = 0


class AttemptFactory(Protocol):
    """Makes the attempts of one request."""

    def may_convert(self, step: Step) -> bool:
        """Return whether `adapt` may have to convert media before an attempt at a step."""

    async def adapt(self, step: Step) -> None:
        """Convert the media that a step's model does not read, unless that was done before.

        Raises:
            AdaptationError: a medium cannot be converted.
        """

    def converts(self, step: Step, field: str) -> bool:
        """Return whether media of a kind that a step's model rejects can be converted.

        Args:
            step: the step.
            field: the rejected kind of media, as named by `services.inference.learned.refusals`.
        """

    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt | None:
        """Return a first attempt that sends the request without preparing it.

        None if the request has to be prepared for the step's model.
        """

    def attempt(self, step: Step, options: AttemptOptions) -> tuple[Attempt, bool]:
        """Return an attempt, and whether its request ends with the delivered text to continue.

        Raises:
            GatewayError: the provider does not support the request.
        """

    def reserved_tokens(self, step: Step) -> int:
        """Return the tokens that an attempt reserves of the limits of its deployment.

        They are the estimated input, and the output that the request asks for at most.
        """

    def refused(self, step: Step) -> frozenset[str]:
        """Return the fields that a model rejects, named as in `learned.refusals`."""

    def learn_output_bound(self, step: Step, bound: int) -> bool:
        """Record a model's largest accepted `max_tokens`; return whether it is a new one."""

    def learn_refusal(self, key: ModelKey, name: str) -> None:
        """Record that a model rejects a field, or PREFILL."""


class UnpreparedAttempts(ABC):
    """Makes the attempts of a request without a conversation, which nothing prepares.

    Nothing is converted, and no answer is continued; see `AttemptFactory`.
    """

    @abstractmethod
    def direct_attempt(self, step: Step, *, stream: bool) -> Attempt:
        """Return an attempt."""

    def may_convert(self, step: Step) -> bool:
        """Return False."""
        return False

    async def adapt(self, step: Step) -> None:  # noqa: B027  # nothing to do for any subclass
        """Do nothing."""

    def converts(self, step: Step, field: str) -> bool:
        """Return False."""
        return False

    def attempt(self, step: Step, options: AttemptOptions) -> tuple[Attempt, bool]:
        """Return an attempt, which never continues an answer."""
        return self.direct_attempt(step, stream=options.stream), False

    def learn_output_bound(self, step: Step, bound: int) -> bool:
        """Return False: such requests have no `max_tokens`."""
        return False
