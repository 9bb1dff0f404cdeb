"""The stages of a request in the engine: checked, then prepared."""

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
    """The plan and properties of a validated request.

    Attributes:
        plan: the fallback plan.
        providers: the providers, by name.
        media: the media of the request, if it uses no memory.
        has_thinking: whether the conversation may contain thinking.
        is_remembered: whether the request uses memory.
        web: runs the gateway's own tools.
        offers_tools: whether a model may call the gateway's own tools.
        has_tool_calls: whether the conversation may contain calls of the gateway's own tools.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    media: Sequence[MediaRef]
    has_thinking: bool
    is_remembered: bool
    web: WebTools | None
    offers_tools: bool
    has_tool_calls: bool


class PreparedRequest(NamedTuple):
    """A request with its files loaded, ready for the attempts of its plan.

    Attributes:
        plan: the fallback plan.
        providers: the providers, by name.
        attempts: makes the attempts.
        tools: makes the requests of rounds, and runs tool calls; None if no tools of the gateway
            are offered.
        meter: records the usage of the request.
    """

    plan: Plan
    providers: Mapping[str, Provider]
    attempts: RequestAttempts
    tools: tuple[Rounds, WebTools] | None
    meter: Meter
