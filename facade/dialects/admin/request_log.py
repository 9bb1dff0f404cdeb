"""Requests for entries of the request log, and their answers."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from facade.dialects.admin import answers, bodies
from facade.dialects.admin.arguments import Arguments
from facade.dialects.gateway_objects import attempt_object
from facade.dialects.json_schemas import JsonObject
from gateway.requests.v1.requests_pb2 import (
    GetRequestRequest,
    GetRequestResponse,
    ListRequestsRequest,
    LoggedRequest,
    RequestBodies,
    RequestFilter,
)
from services.common.labels import END_USER
from services.common.money import decimal_dollars, parse_dollars

_ID = Annotated[str, Field(min_length=1, max_length=64)]
_NAME = Annotated[str, Field(min_length=1, max_length=512)]
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_TEXT: JsonObject = {"type": "string"}
_OPTIONAL_TEXT: JsonObject = {"type": ["string", "null"]}


def _checked(text: str) -> str:
    parse_dollars(text)
    return text


_Dollars = Annotated[str, Field(pattern=r"^[0-9]{1,7}(\.[0-9]{1,12})?$"), AfterValidator(_checked)]


class OwnRequestsQuery(bodies.Page):
    """Selects entries of the request log, of one user."""

    key_id: _ID | None = Field(None, description="Only requests with this key.")
    model: _NAME | None = Field(
        None, description="Only requests that named this model, or that it answered."
    )
    has_model: Literal["true"] | None = Field(
        None, description="`true`: only requests that named a model."
    )
    provider: _NAME | None = Field(None, description="Only requests that this provider answered.")
    status: Annotated[str, Field(pattern=r"^[1-5]([0-9]{2}|xx)$")] | None = Field(
        None, description="Only requests with this HTTP status, such as `429`, or `5xx`."
    )
    request_id: Annotated[str, Field(min_length=1, max_length=128)] | None = Field(
        None, description="Only requests with this `x-request-id`."
    )
    text: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None,
        description="Only requests with this text, in any case, in the endpoint, the name of a "
        "model, the error code, or logged bodies.",
    )
    tag: Annotated[str, Field(min_length=1, max_length=97)] | None = Field(
        None, description="Only requests with this tag, such as `project=alpha`."
    )
    end_user: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="Only requests of this end user."
    )
    since: bodies.QueryTime | None = Field(
        None, description="When the request ended, in Unix seconds, inclusive."
    )
    until: bodies.QueryTime | None = Field(
        None, description="When the request ended, in Unix seconds, exclusive."
    )
    min_cost: _Dollars | None = Field(
        None, description="Only requests of at least this cost, in decimal US dollars."
    )
    max_cost: _Dollars | None = Field(
        None, description="Only requests of at most this cost, in decimal US dollars."
    )


class RequestsQuery(OwnRequestsQuery):
    """Selects entries of the request log."""

    user_id: _ID | None = Field(None, description="Only requests of this user.")
    team_id: _ID | None = Field(None, description="Only requests of this team.")
    end_user: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None,
        description="Only requests of this end user; also of others' of the same name, without "
        "`user_id`.",
    )


REQUEST = answers.object_schema(
    "request",
    {
        "id": _TEXT,
        "request_id": {**_TEXT, "description": "The `x-request-id` of the response."},
        "ended_at": {"type": "number", "description": "Unix seconds, with milliseconds."},
        "user_id": _TEXT,
        "team_id": _OPTIONAL_TEXT,
        "key_id": _TEXT,
        "tags": {
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "The tags that `usage.tags` enables.",
        },
        "end_user": {**_OPTIONAL_TEXT, "description": "With `usage.end_users`."},
        "endpoint": {**_TEXT, "description": "Method and path."},
        "status": {
            "type": "integer",
            "description": "HTTP status; 499 if the caller disconnected before the end.",
        },
        "error_code": {
            **_OPTIONAL_TEXT,
            "description": "A stream that broke off has one beside the status 200.",
        },
        "requested_model": _OPTIONAL_TEXT,
        "model": {**_OPTIONAL_TEXT, "description": "The model that answered."},
        "provider": _OPTIONAL_TEXT,
        "attempts": {**_COUNT, "description": "Attempts at providers."},
        "duration_ms": _COUNT,
        "first_content_ms": {"type": ["integer", "null"], "minimum": 0},
        "input_tokens": {**_COUNT, "description": "Including those of a provider's cache."},
        "output_tokens": _COUNT,
        "has_bodies": {"type": "boolean", "description": "Whether bodies were logged."},
        "cost": {
            **_OPTIONAL_TEXT,
            "description": "Decimal US dollars, exact; null if it is not known, or no model was "
            "called.",
        },
    },
)


_BODY: JsonObject = {
    "type": ["object", "null"],
    "description": "Redacted; null if it was not logged, or is not stored any more.",
    "required": ["content", "truncated"],
    "additionalProperties": False,
    "properties": {
        "content": {"type": "string", "description": "JSON, or server-sent events."},
        "truncated": {"type": "boolean", "description": "Whether the end is missing."},
    },
}
_ATTEMPT: JsonObject = {
    "type": "object",
    "required": ["step", "model", "status", "reason", "ms"],
    "additionalProperties": False,
    "properties": {
        "step": {**_TEXT, "description": "Id of the fallback step; `primary` outside a chain."},
        "model": {**_TEXT, "description": "Provider and model."},
        "status": {
            "type": ["integer", "null"],
            "description": "The provider's HTTP status; null without a response.",
        },
        "reason": _TEXT,
        "ms": {**_COUNT, "description": "Milliseconds until it failed."},
    },
}
_DETAILS: JsonObject = {
    "failed_attempts": {
        "type": "array",
        "items": _ATTEMPT,
        "description": "The attempts at providers that failed, in order; at most 64.",
    },
    "headers": {
        "type": "object",
        "additionalProperties": _TEXT,
        "description": "Headers that the gateway added to the response.",
    },
    "request_body": _BODY,
    "response_body": _BODY,
}
REQUEST_WITH_BODIES: JsonObject = {
    **REQUEST,
    "required": [*REQUEST["required"], *_DETAILS],
    "properties": {**REQUEST["properties"], **_DETAILS},
}


def list_request(arguments: Arguments) -> ListRequestsRequest:
    """Return the request for a list of entries."""
    query: OwnRequestsQuery = arguments.query
    request_filter = RequestFilter(
        key_id=query.key_id or "",
        model=query.model or "",
        has_model=query.has_model is not None,
        provider=query.provider or "",
        request_id=query.request_id or "",
        text=query.text or "",
        tag=query.tag or "",
        end_user=query.end_user or "",
        since_ms=None if query.since is None else 1000 * query.since,
        until_ms=None if query.until is None else 1000 * query.until,
        min_cost_pusd=None if query.min_cost is None else parse_dollars(query.min_cost),
        max_cost_pusd=None if query.max_cost is None else parse_dollars(query.max_cost),
    )
    if isinstance(query, RequestsQuery):
        request_filter.user_id = query.user_id or ""
        request_filter.team_id = query.team_id or ""
    if query.status is not None:
        request_filter.min_status = int(query.status.replace("xx", "00"))
        request_filter.max_status = int(query.status.replace("xx", "99"))
    return ListRequestsRequest(filter=request_filter, page_size=query.limit, page_token=query.page)


def get_request(arguments: Arguments) -> GetRequestRequest:
    """Return the request for an entry."""
    return GetRequestRequest(id=arguments.ids["entry_id"])


def render_request(logged: LoggedRequest) -> JsonObject:
    """Return the JSON object of an entry."""
    counts: dict[str, Any] = {
        name: getattr(logged, name)
        for name in ("status", "attempts", "duration_ms", "input_tokens", "output_tokens")
    }
    labels = {label.name: label.value for label in logged.labels}
    end_user = labels.pop(END_USER, None)
    names = ("team_id", "error_code", "requested_model", "model", "provider")
    return {
        "object": "request",
        "id": logged.id,
        "request_id": logged.request_id,
        "ended_at": logged.time_ms / 1000,
        "user_id": logged.user_id,
        "key_id": logged.key_id,
        "tags": labels,
        "end_user": end_user,
        "endpoint": logged.endpoint,
        **{name: getattr(logged, name) or None for name in names},
        **counts,
        "first_content_ms": (
            logged.first_content_ms if logged.HasField("first_content_ms") else None
        ),
        "has_bodies": logged.has_bodies,
        "cost": decimal_dollars(logged.cost_pusd) if logged.HasField("cost_pusd") else None,
    }


def render_with_bodies(answer: GetRequestResponse) -> JsonObject:
    """Return the JSON object of an entry with its bodies."""
    return render_entry(answer.request, answer.bodies if answer.HasField("bodies") else None)


def render_entry(logged: LoggedRequest, bodies: RequestBodies | None) -> JsonObject:
    """Return the JSON object of an entry with its bodies, if they were logged."""
    details = logged.details
    return {
        **render_request(logged),
        "failed_attempts": [attempt_object(attempt) for attempt in details.failed_attempts],
        "headers": dict(details.headers),
        "request_body": bodies and _body(bodies.request, bodies.is_request_truncated),
        "response_body": bodies and _body(bodies.response, bodies.is_response_truncated),
    }


def _body(content: str, is_truncated: bool) -> JsonObject:
    return {"content": content, "truncated": is_truncated}
