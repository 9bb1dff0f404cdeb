"""Response headers that name what served an answer."""

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from facade.dialects.paths import CallerPaths
from gateway.inference.v1.inference_pb2 import Served
from services.common.texts import MAX_NAME

# Names come from callers too, and a header holds no other characters safely.
_SAFE = "/:@!$&'()*+;=~[]._-"
# Clients refuse lines that are much longer.
_LONGEST_LIST = 4000


# The provider's id of the request.
UPSTREAM_REQUEST_ID = "x-upstream-request-id"


def served_headers(served: Served, paths: CallerPaths | None) -> dict[str, str]:
    """Return `x-gateway-model`, `-provider`, `-step`, `-attempts`, and `-dropped` if there is any.

    `x-gateway-adapted` lists media that were converted for the model, as many as a header holds:
    the path of each part, and what was made of it.

    `x-upstream-request-id` is the provider's id of the request; those headers of its answer
    that are of the caller's dialect stand beside it as they came.
    `x-memory-truncated` tells how many turns of a memory the model could not be sent.
    What is no plain ASCII in a name is percent-encoded. Of the fields that were left out
    as many are named as a header holds.

    Args:
        served: what the service says.
        paths: translates its names of fields into the caller's; None where they are the same.
    """
    headers = {
        "x-gateway-model": _safe(served.model[:MAX_NAME]),
        "x-gateway-provider": _safe(served.provider[:MAX_NAME]),
        "x-gateway-step": _safe(served.step[:MAX_NAME]),
        "x-gateway-attempts": str(served.attempts),
    }
    if served.dropped:
        headers["x-gateway-dropped"] = _listed(
            served.dropped if paths is None else paths.dropped(served.dropped)
        )
    if served.adapted:
        headers["x-gateway-adapted"] = _listed(
            served.adapted if paths is None else paths.adapted(served.adapted)
        )
    if served.memory_truncated:
        headers["x-memory-truncated"] = str(served.memory_truncated)
    if upstream_id := served.upstream_request_id:
        headers[UPSTREAM_REQUEST_ID] = upstream_id
    if told := served.headers:
        headers.update(told)
    return headers


def _listed(names: Iterable[str]) -> str:
    listed = ""
    for name in names:
        safe = quote(name[:MAX_NAME], safe=_SAFE)
        longer = f"{listed}, {safe}" if listed else safe
        if len(longer) > _LONGEST_LIST:
            break
        listed = longer
    return listed


# The same few names are told again and again.
@lru_cache(maxsize=1024)
def _safe(name: str) -> str:
    return quote(name, safe=_SAFE)
