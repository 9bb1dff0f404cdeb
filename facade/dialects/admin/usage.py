"""Requests for usage, and their answers: sums of tokens and costs, and latencies of requests."""

from typing import Annotated, Any, Literal

from pydantic import Field

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.arguments import Arguments
from facade.dialects.json_schemas import JsonObject
from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import ActivitySum, Latencies, UsageGrouping, UsageSum

_DAY = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_COUNTS = (
    *("requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens"),
    *("cache_written_tokens", "reasoning_tokens", "unpriced", "estimated"),
)


_NAME = Annotated[str, Field(min_length=1, max_length=512)]


class _OwnFilter(bodies.Page):
    """The page of a list of sums, and filters of the usage of one user in them."""

    key_id: _NAME | None = Field(None, description="Only usage of this key.")
    model: _NAME | None = Field(None, description="Only usage of this model.")
    provider: _NAME | None = Field(None, description="Only usage of this provider.")
    page: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        "",
        description="Page token: the `next_page` of the previous page.",
        json_schema_extra={"default": None},
    )


class _Filter(_OwnFilter):
    """The page of a list of sums, and filters of the usage in them."""

    user_id: _NAME | None = Field(None, description="Only usage of this user.")
    team_id: _NAME | None = Field(None, description="Only usage of this team.")


class UsageQuery(_Filter):
    """Selects the usage to sum up, and its grouping."""

    by: Literal["day", "user", "team", "key", "model", "provider", "tag", "end_user"] = Field(
        "day", description="`tag` needs `tag`, `end_user` needs `user_id`."
    )
    tag: Annotated[str, Field(min_length=1, max_length=97)] | None = Field(
        None,
        description="The key of a tag, with `by=tag`; otherwise only usage with this tag, such as "
        "`project=alpha`.",
    )
    end_user: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="Only usage of this end user of `user_id`."
    )
    from_day: _DAY | None = Field(None, description="The first day (UTC).")
    to_day: _DAY | None = Field(None, description="The last day (UTC).")


class _Interval(bodies.Query):
    """The interval of the activity."""

    since: bodies.QueryTime | None = Field(
        None,
        description="Unix seconds; 24 hours before `until` by default. Its hour counts as a whole.",
    )
    until: bodies.QueryTime | None = Field(
        None,
        description="Unix seconds, exclusive; now by default. At most 31 days after `since`. Its "
        "hour counts as a whole.",
    )


_SPLIT = "Second grouping, within each row; must differ from `by`."


class OwnActivityQuery(_Interval, _OwnFilter):
    """Selects the activity of one user to sum up, and its grouping."""

    by: Literal["hour", "day", "key", "model", "provider"] = "hour"
    split_by: Literal["key", "model", "provider"] | None = Field(None, description=_SPLIT)


class ActivityQuery(_Interval, _Filter):
    """Selects the activity to sum up, and its grouping."""

    by: Literal["hour", "day", "user", "team", "key", "model", "provider"] = "hour"
    split_by: Literal["user", "team", "key", "model", "provider"] | None = Field(
        None, description=_SPLIT
    )


_SUM_FIELDS: JsonObject = {
    "id": {
        "type": "string",
        "description": "The day, the id of the user, team or key, the name of the model or "
        "provider, the value of the tag, or the end user; empty for usage without one.",
    },
    "name": {
        "type": ["string", "null"],
        "description": "The name of the user or team, or the prefix of the key.",
    },
    **dict.fromkeys(_COUNTS, _COUNT),
    "unpriced": {**_COUNT, "description": "Answers of unknown cost, not included in `cost`."},
    "estimated": {**_COUNT, "description": "Records with estimated tokens, which are included."},
    "cost": {"type": "string", "description": "Decimal US dollars, exact."},
}
SUM = answers.object_schema("usage", _SUM_FIELDS)
_PERCENTILES = ("p50", "p95", "p99", "max")
_LATENCIES: JsonObject = {
    "type": ["object", "null"],
    "description": "In milliseconds, over served requests; null if no value is known. Percentiles "
    "are interpolated, usually to a few percent.",
    "required": ["count", "mean", *_PERCENTILES],
    "additionalProperties": False,
    "properties": {
        "count": {**_COUNT, "description": "Number of requests measured."},
        "mean": {"type": "number", "minimum": 0},
        **dict.fromkeys(_PERCENTILES, _COUNT),
    },
}
ACTIVITY = answers.object_schema(
    "activity",
    {
        **_SUM_FIELDS,
        "id": {
            **_SUM_FIELDS["id"],
            "description": "As in usage; for hours, the start of the hour.",
        },
        "split_id": {
            "type": ["string", "null"],
            "description": "Value of `split_by` for the row, in the format of `id`; null "
            "without `split_by`.",
        },
        "split_name": {
            "type": ["string", "null"],
            "description": "Name of `split_id`, in the format of `name`.",
        },
        "cancelled_requests": {
            **_COUNT,
            "description": "Requests cancelled because the caller disconnected.",
        },
        "first_content_ms": _LATENCIES,
        "duration_ms": _LATENCIES,
    },
)


def usage_request(arguments: Arguments) -> usage_pb2.ReportUsageRequest:
    """Return the request for a list of usage."""
    query: UsageQuery = arguments.query
    usage_filter, tag = _filter(query), query.tag or ""
    usage_filter.end_user = query.end_user or ""
    if query.by != "tag":
        usage_filter.tag, tag = tag, ""
    return usage_pb2.ReportUsageRequest(
        tag=tag,
        by=UsageGrouping.Value(f"USAGE_GROUPING_{query.by.upper()}"),
        from_day=query.from_day or "",
        to_day=query.to_day or "",
        page_size=query.limit,
        page_token=query.page,
        filter=usage_filter,
    )


def activity_request(arguments: Arguments) -> usage_pb2.ReportActivityRequest:
    """Return the request for a list of activity."""
    query: OwnActivityQuery | ActivityQuery = arguments.query
    split_by = f"USAGE_GROUPING_{(query.split_by or 'unspecified').upper()}"
    return usage_pb2.ReportActivityRequest(
        by=UsageGrouping.Value(f"USAGE_GROUPING_{query.by.upper()}"),
        split_by=UsageGrouping.Value(split_by),
        since_ms=None if query.since is None else 1000 * query.since,
        until_ms=None if query.until is None else 1000 * query.until,
        filter=_filter(query),
        page_size=query.limit,
        page_token=query.page,
    )


def _filter(query: _OwnFilter) -> usage_pb2.UsageFilter:
    usage_filter = usage_pb2.UsageFilter(
        key_id=query.key_id or "", model=query.model or "", provider=query.provider or ""
    )
    if isinstance(query, _Filter):
        usage_filter.user_id = query.user_id or ""
        usage_filter.team_id = query.team_id or ""
    return usage_filter


def render_sum(usage: UsageSum) -> JsonObject:
    """Return the JSON object of a sum of usage."""
    counts: dict[str, Any] = {name: getattr(usage, name) for name in _COUNTS}
    return {
        "object": "usage",
        "id": usage.group,
        "name": usage.name or None,
        **counts,
        "cost": usage.cost_dollars,
    }


def render_activity(activity: ActivitySum) -> JsonObject:
    """Return the JSON object of a sum of activity."""
    return {
        **render_sum(activity.usage),
        "object": "activity",
        "split_id": activity.split if activity.HasField("split") else None,
        "split_name": activity.split_name or None,
        "cancelled_requests": activity.cancelled_requests,
        "first_content_ms": _render_latencies(activity.first_content),
        "duration_ms": _render_latencies(activity.duration),
    }


def _render_latencies(times: Latencies) -> JsonObject | None:
    if not times.count:
        return None
    return {
        "count": times.count,
        "mean": round(times.mean_ms, 1),
        **{name: getattr(times, f"{name}_ms") for name in _PERCENTILES},
    }
