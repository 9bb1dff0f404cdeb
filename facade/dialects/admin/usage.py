"""The endpoint of usage: sums of what requests used and cost."""

from typing import Annotated, Any, Literal

from pydantic import Field

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.table import Arguments, Endpoint, JsonObject
from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageGrouping, UsageSum

_DAY = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_COUNTS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "unpriced"),
)


class UsageQuery(bodies.Page):
    """Which usage to sum up, and how."""

    by: Literal["day", "user", "team", "key", "model", "provider"] = "day"
    from_day: _DAY | None = Field(None, description="The first day (UTC).")
    to_day: _DAY | None = Field(None, description="The last day (UTC).")
    page: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        "", description="The `next_page` of an earlier list.", json_schema_extra={"default": None}
    )


_SUM = answers.object_schema(
    "usage",
    {
        "id": {
            "type": "string",
            "description": "The day, the id of the user, team or key, or the name of the model or "
            "provider; empty for what belongs to none.",
        },
        "name": {
            "type": ["string", "null"],
            "description": "The name of the user or team, or the beginning of the key.",
        },
        **dict.fromkeys(_COUNTS, _COUNT),
        "unpriced": {**_COUNT, "description": "Answers of unknown cost, left out of `cost`."},
        "cost": {"type": "string", "description": "Decimal US dollars, exact."},
    },
)


def _request(given: Arguments) -> usage_pb2.ReportUsageRequest:
    query: UsageQuery = given.query
    return usage_pb2.ReportUsageRequest(
        by=UsageGrouping.Value(f"USAGE_GROUPING_{query.by.upper()}"),
        from_day=query.from_day or "",
        to_day=query.to_day or "",
        page_size=query.limit,
        page_token=query.page,
    )


def _render_sum(found: UsageSum) -> JsonObject:
    counts: dict[str, Any] = {name: getattr(found, name) for name in _COUNTS}
    return {
        "object": "usage",
        "id": found.group,
        "name": found.name or None,
        **counts,
        "cost": found.cost_dollars,
    }


USAGE = Endpoint(
    method="GET",
    path="/usage",
    operation="reportUsage",
    summary="What requests used and cost, by day, user, team, key, model or provider",
    stub="usage",
    rpc="ReportUsage",
    request=_request,
    render=lambda found: answers.render_list(found.sums, found.next_page_token, _render_sum),
    answer=answers.list_schema(_SUM),
    query=UsageQuery,
)
