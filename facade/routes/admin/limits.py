"""The endpoints of limits: GET, PUT and DELETE for each kind of subject."""

from collections.abc import Iterator
from functools import partial

from facade.dialects.admin import answers, bodies, limits
from facade.endpoint import EndpointSpec
from facade.routes.admin.call import rpc_endpoint

# The paths of subjects, and what they are called.
_SUBJECTS = {
    "key": ("/keys/{key_id}/limits", "Key", "a key"),
    "user": ("/users/{user_id}/limits", "User", "a user"),
    "team": ("/teams/{team_id}/limits", "Team", "a team"),
    "tag": ("/tags/{tag}/{value}/limits", "Tag", "a tag"),
    "end_user": ("/users/{user_id}/end-users/{end_user}/limits", "EndUser", "an end user"),
    "end_users": ("/users/{user_id}/end-user-limits", "EndUsers", "each end user of a user"),
}


def _endpoints(kind: str) -> Iterator[EndpointSpec]:
    path, title, shown = _SUBJECTS[kind]
    name = f"{title}Limits"
    yield rpc_endpoint(
        "GET",
        path,
        f"get{name}",
        f"Get the limits of {shown}",
        rpc="GetLimits",
        request=partial(limits.get_request, kind),
        render=limits.render_with_usage,
        answer=answers.LIMITS_WITH_USAGE,
    )
    yield rpc_endpoint(
        "PUT",
        path,
        f"set{name}",
        f"Replace the limits of {shown}",
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
        f"Remove the limits of {shown}",
        rpc="ClearLimits",
        request=partial(limits.clear_request, kind),
        render=limits.render_cleared,
        answer=limits.CLEARED,
    )
    if kind == "end_users":
        return
    yield rpc_endpoint(
        "POST",
        f"{path}/reset",
        f"reset{title}Budget",
        f"Count the spending of a budget of {shown} from 0 on",
        rpc="ResetBudget",
        request=partial(limits.reset_request, kind),
        render=limits.render_budget,
        answer=answers.BUDGET,
        body=bodies.ResetBudget,
    )
    yield rpc_endpoint(
        "POST",
        f"{path}/top-up",
        f"topUp{title}Budget",
        f"Add an amount to a budget of {shown} for the rest of its window",
        rpc="TopUpBudget",
        request=partial(limits.top_up_request, kind),
        render=limits.render_budget,
        answer=answers.BUDGET,
        body=bodies.TopUpBudget,
    )


_LIST = rpc_endpoint(
    "GET",
    "/limits",
    "listLimits",
    "List all subjects with limits, and what is left of these",
    rpc="ListLimits",
    request=limits.list_request,
    render=lambda page: answers.render_list(
        page.subjects, page.next_page_token, limits.render_subject
    ),
    answer=answers.list_schema(limits.LIMITED_SUBJECT),
    query=bodies.LimitsQuery,
)
ENDPOINTS = (*(endpoint for kind in _SUBJECTS for endpoint in _endpoints(kind)), _LIST)
