"""A request on its way through the engine: checked, and then prepared."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from services.inference.attempt_factory import RequestAttempts
from services.inference.media import MediaRef
from services.inference.plans.plan import Plan
from services.inference.providers.base import Provider
from services.inference.tools.rounds import Rounds
from services.inference.tools.running import WebTools
from services.inference.usage.metering import Meter


class CheckedRequest(NamedTuple):
    """A valid request, unchanged, and its plan.

    Attributes:
        plan: the steps that may answer.
        providers: the providers, by name.
        media: those of the request, where it uses no memory.
        has_thoughts: whether there may be thinking in the conversation.
        is_remembered: whether it uses memory.
        web: runs the gateway's own tools.
        offers_tools: whether a model may call some of them.
        has_tool_calls: whether the conversation may hold calls of them.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    media: Sequence[MediaRef]
    has_thoughts: bool
    is_remembered: bool
    web: WebTools | None
    offers_tools: bool
    has_tool_calls: bool


class PreparedRequest(NamedTuple):
    """A request whose files are in their places, ready for the steps of its plan.

    Attributes:
        plan: the steps that may answer.
        providers: the providers, by name.
        attempts: makes the attempts.
        tools: makes the requests of rounds, and runs the tools that are called; None where no
            tool of the gateway's is offered.
        meter: notes what the request uses.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    attempts: RequestAttempts
    tools: tuple[Rounds, WebTools] | None
    meter: Meter
