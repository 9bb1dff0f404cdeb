"""The endpoints of limits: GET, PUT and DELETE for each kind of subject."""

from collections.abc import Iterator
from functools import partial

from facade.dialects.admin import answers, bodies, limits
from facade.endpoint import EndpointSpec
from facade.routes.admin.call import rpc_endpoint


def _endpoints(kind: str) -> Iterator[EndpointSpec]:
    path = f"/{kind}s/{{{kind}_id}}/limits"
    name = f"{kind.capitalize()}Limits"
    yield rpc_endpoint(
        "GET",
        path,
        f"get{name}",
        f"Get the limits of a {kind}",
        rpc="GetLimits",
        request=partial(limits.get_request, kind),
        render=limits.render_with_usage,
        answer=answers.LIMITS_WITH_USAGE,
    )
    yield rpc_endpoint(
        "PUT",
        path,
        f"set{name}",
        f"Replace the limits of a {kind}",
        rpc="SetLimits",
        request=partial(limits.set_request, kind),
        render=limits.render,
        answer=answers.LIMITS,
        body=bodies.SetLimits,
    )
    yield rpc_endpoint(
        "DELETE",
        path,
        f"clear{name}",
        f"Remove the limits of a {kind}",
        rpc="ClearLimits",
        request=partial(limits.clear_request, kind),
        render=limits.render_cleared,
        answer=limits.CLEARED,
    )
    yield rpc_endpoint(
        "POST",
        f"{path}/reset",
        f"reset{kind.capitalize()}Budget",
        f"Count the spending of a budget of a {kind} from 0 on",
        rpc="ResetBudget",
        request=partial(limits.reset_request, kind),
        render=limits.render_budget,
        answer=answers.BUDGET,
        body=bodies.ResetBudget,
    )
    yield rpc_endpoint(
        "POST",
        f"{path}/top-up",
        f"topUp{kind.capitalize()}Budget",
        f"Add an amount to a budget of a {kind} for the rest of its window",
        rpc="TopUpBudget",
        request=partial(limits.top_up_request, kind),
        render=limits.render_budget,
        answer=answers.BUDGET,
        body=bodies.TopUpBudget,
    )


ENDPOINTS = tuple(endpoint for kind in ("key", "user", "team") for endpoint in _endpoints(kind))
