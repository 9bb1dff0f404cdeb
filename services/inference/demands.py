"""What requests may use at most, for their reservations."""

from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest
from services.inference import embeddings, forwarding
from services.inference.limits.fees import Fees
from services.inference.limits.reservation import Demand
from services.inference.run.engine import Engine

Demanding = GenerateRequest | EmbedRequest | ForwardRequest


def demand_of(engine: Engine, request: Demanding, fees: Fees | None) -> Demand:
    """Return what a request may use at most.

    Args:
        engine: the engine that will answer it.
        request: the request, perhaps without its conversation.
        fees: its fees; None if its caller has no budget.

    Raises:
        GatewayError: as `Plans.plan_for`.
    """
    if isinstance(request, EmbedRequest):
        return embeddings.demand_of(engine, request, fees)
    if isinstance(request, ForwardRequest):
        return forwarding.demand_of(engine, request, fees)
    plan, routes = engine.plan_of(request), engine.routes
    providers = routes.providers_of(request.dialect)
    is_native = any(
        provider.dialect == request.dialect
        for name in {place.target.adapter for place in plan.places()}
        if (provider := providers.get(name)) is not None
    )
    translates_searches = any(
        place.target.native_tools or (place.target.native_tools is None and not routes.has_search)
        for place in plan.places()
    )
    return Demand(
        plan,
        request,
        fees,
        routes.costs,
        is_native=is_native,
        translates_searches=translates_searches,
    )
