"""Protocol of the factory of attempts."""

from dataclasses import dataclass
from typing import Protocol

from services.inference.attempt import Attempt
from services.inference.circuit_breaker import ModelKey
from services.inference.plans.plan import Step
from services.inference.stream.delivered import DeliveredPrefix


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
