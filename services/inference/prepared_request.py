"""The stages of a request in the engine: checked, then prepared."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import unsupported
from services.inference import thinking, validation
from services.inference.attempt_factory import RequestAttempts
from services.inference.balancing.balancer import Balancer
from services.inference.media import MediaRef, find_media
from services.inference.memory.split import check_steps, uses_memory
from services.inference.plans.plan import Plan, Plans
from services.inference.providers.base import Provider
from services.inference.routes import Routes
from services.inference.tools.history import KINDS as HISTORY_KINDS
from services.inference.tools.offer import NOTHING, may_run_tools
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


def check_request(
    request: GenerateRequest, routes: Routes, plans: Plans, balancer: Balancer, *, whole: bool
) -> CheckedRequest:
    """Validate a request and make its plan; does no I/O.

    Args:
        request: the request; modified if its answer cannot be passed through.
        routes: the models, and the providers that serve them.
        plans: makes the plans of these models.
        balancer: chooses among the deployments of a model.
        whole: whether the answer is returned as a whole.

    Raises:
        GatewayError: the request or its chain breaks a rule, or a model does not exist.
    """
    kinds = validation.check(request)
    plan = balancer.expand_deployments(plans.plan_for(request), request, whole=whole)
    providers = routes.providers_of(request.dialect)
    has_tool_calls = not HISTORY_KINDS.isdisjoint(kinds)
    asks = _offers_tools(request, plan, routes, has_tool_calls=has_tool_calls)
    if uses_memory(request):
        check_steps(request, plan)
        # The answer is parsed here, to be committed to memory.
        request.takes_passthrough = False
        return CheckedRequest(plan, providers, (), True, True, routes.web, asks, has_tool_calls)
    media = find_media(request) if "media" in kinds else ()
    has_thinking = not thinking.KINDS.isdisjoint(kinds)
    return CheckedRequest(
        plan, providers, media, has_thinking, False, routes.web, asks, has_tool_calls
    )


def _offers_tools(
    request: GenerateRequest, plan: Plan, routes: Routes, *, has_tool_calls: bool
) -> bool:
    """Return whether a model of the plan may call the gateway's own tools."""
    available = NOTHING if routes.web is None else routes.web.available
    providers = routes.providers_of(request.dialect)
    targets = ((providers[step.target.provider].dialect, step.target) for step in plan.steps)
    if not may_run_tools(request, targets, available, has_called=has_tool_calls):
        return False
    if request.use_built_in_tools and not any(available):
        raise unsupported(
            "use_built_in_tools", "use_built_in_tools: this gateway has no built-in tools"
        )
    # The rounds of the answer are joined here.
    request.takes_passthrough = False
    return True
