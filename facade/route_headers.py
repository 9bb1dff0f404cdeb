"""Response headers that identify the serving model."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote, unquote

from facade import credentials
from facade.dialects.gateway_objects import attempt_object
from facade.dialects.limits import set_limits
from facade.http.exchange import Exchange
from gateway.accounts.v1.limits_pb2 import LimitState
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import RouteInfo
from services.common.messages.passthrough_answer import AnswerRoute, CallerLimit
from services.common.text.texts import MAX_NAME

# Names may come from callers; other characters are not safe in a header.
_SAFE = "/:@!$&'()*+;=~[]._-"
# The same, without the characters that separate the fields of a list item.
_IN_LIST = "/:@!$&'()*+~[]._-"
# Clients reject much longer lines.
_LONGEST_LIST = 4000


_CACHE_WORDS = {
    inference_pb2.CACHE_STATUS_HIT: "hit",
    inference_pb2.CACHE_STATUS_MISS: "miss",
    inference_pb2.CACHE_STATUS_BYPASS: "bypass",
}

DROPPED = "x-gateway-dropped"
_ADAPTED = "x-gateway-adapted"
# The provider's request id.
UPSTREAM_REQUEST_ID = "x-upstream-request-id"


def set_caller_limits(
    exchange: Exchange, headers: dict[str, str], limits: Sequence[LimitState | CallerLimit]
) -> None:
    """Set headers of the caller's limits in place of the provider's."""
    api_format = credentials.api_format_of(exchange.headers, credentials.rules_for(exchange.path))
    set_limits(api_format, headers, limits, exchange.context.clock.now_ms())


def answer_headers(exchange: Exchange, route: RouteInfo | AnswerRoute) -> dict[str, str]:
    """Return the headers that describe the route of an answer.

    Every answer has `x-gateway-model`, `-provider`, `-step` and `-attempts`.

    `x-gateway-deployment` is set if the model has several deployments, `x-gateway-cache` if answers
    are cached; a cached answer also has `age` in seconds (RFC 9111, section 5.1).
    `x-gateway-failed-attempts` lists the attempts before the one that answered, `-dropped` the
    dropped fields, and `-adapted` the converted media, with the path of each part and its
    conversion; each list is set if it has items, and has as many as fit. `x-memory-truncated` is
    the number of turns of a memory that did not fit into the model's context.
    `x-upstream-request-id` is the provider's id of the request; headers of its response that belong
    to the caller's dialect are passed through. Non-ASCII characters of names are percent-encoded.

    The state of the caller's own limits, if any, replaces the provider's rate limit headers.
    """
    paths = exchange.caller_paths
    model, provider, step = route.model[:MAX_NAME], route.provider[:MAX_NAME], route.step[:MAX_NAME]
    headers = _identity(model, provider, step, route.attempts).copy()
    if deployment := route.deployment:
        headers["x-gateway-deployment"] = _safe(deployment)
    if route.failed_attempts:
        headers["x-gateway-failed-attempts"] = _joined(map(_failed, route.failed_attempts))
        exchange.failed_attempts = [*map(_copied, route.failed_attempts)]
    if status := route.cache:
        headers["x-gateway-cache"] = _CACHE_WORDS[status]
        if status == inference_pb2.CACHE_STATUS_HIT:
            headers["age"] = str(route.cache_age_s)
    if route.dropped or (paths is not None and paths.source_map.dropped):
        headers[DROPPED] = _listed(route.dropped if paths is None else paths.dropped(route.dropped))
    if route.adapted:
        headers[_ADAPTED] = _listed(
            route.adapted if paths is None else paths.adapted(route.adapted)
        )
    if route.memory_truncated:
        headers["x-memory-truncated"] = str(route.memory_truncated)
    if upstream_id := route.upstream_request_id:
        headers[UPSTREAM_REQUEST_ID] = upstream_id
    if provider_headers := route.headers:
        headers.update(provider_headers)
    if limits := route.limits:
        set_caller_limits(exchange, headers, limits)
    exchange.added_headers = headers
    return headers


def add_dropped(headers: dict[str, str], names: Iterable[str]) -> None:
    """Add parts of an answer to the header that lists what was dropped."""
    listed = headers.get(DROPPED)
    safe = map(_safe, names)
    headers[DROPPED] = _joined(safe if listed is None else (listed, *safe))


def changes_in(headers: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what headers list as dropped and as adapted, for bodies that are kept without them."""
    named = (("dropped", DROPPED), ("adapted", _ADAPTED))
    return {
        name: [unquote(item) for item in headers[header].split(", ")]
        for name, header in named
        if headers.get(header)
    }


def _copied(attempt: Attempt) -> Attempt:
    """Return a copy, which does not keep the message that the attempt is a part of."""
    copy = Attempt()
    copy.CopyFrom(attempt)
    return copy


def _failed(attempt: Attempt) -> str:
    """Return the model of an attempt with its step, status, reason and milliseconds."""
    facts = attempt_object(attempt)
    model, step = (quote(str(facts[key])[:MAX_NAME], safe=_IN_LIST) for key in ("model", "step"))
    status = "" if facts["status"] is None else f";status={facts['status']}"
    return f"{model};step={step}{status};reason={facts['reason']};ms={facts['ms']}"


def _listed(names: Iterable[str]) -> str:
    return _joined(map(_safe, names))


def _joined(items: Iterable[str]) -> str:
    """Join items with commas, as many as fit."""
    listed = ""
    for safe in items:
        longer = f"{listed}, {safe}" if listed else safe
        if len(longer) > _LONGEST_LIST:
            break
        listed = longer
    return listed


# Cached, as the same few names repeat. They may come from callers: cut them first.
@lru_cache(maxsize=1024)
def _identity(model: str, provider: str, step: str, attempts: int) -> dict[str, str]:
    """Return the headers of every answer; the caller must copy them."""
    return {
        "x-gateway-model": _safe(model),
        "x-gateway-provider": _safe(provider),
        "x-gateway-step": _safe(step),
        "x-gateway-attempts": str(attempts),
    }


def _safe(name: str) -> str:
    return quote(name[:MAX_NAME], safe=_SAFE)
