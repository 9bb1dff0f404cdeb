"""Methods of the providers' clients that the gateway does not serve, and what to do instead.

Requests for them are answered with 501 in place of 404 or 405. `docs/reference/sdk-methods.md`
lists all methods of the official clients.
"""

from collections.abc import Iterator

from facade.aliases import route_of

_API = "/beta/v1/"
_MAX_SEGMENTS = 8

_PROVIDER = "Call the provider itself"
_AGENTS = "Run agents in your program; the gateway serves their requests to models"
_ADMINISTRATION = "Users, teams, keys, limits and usage are administered under /admin/v1"

# By the begin of the path, or by the method and the begin; `*` is any segment.
_INSTEAD = {
    "agents": _AGENTS,
    "assistants": "Use responses, OpenAI's successor of assistants: POST /v1/responses",
    "audio": _PROVIDER,
    "chatkit": _PROVIDER,
    "complete": "Use POST /v1/messages",
    "containers": _PROVIDER,
    "content_provenance_checks": _PROVIDER,
    "decisions": _PROVIDER,
    "deployment_runs": _AGENTS,
    "deployments": _AGENTS,
    "dreams": _AGENTS,
    "environments": _AGENTS,
    "evals": _PROVIDER,
    "fine_tuning": _PROVIDER,
    "live": _PROVIDER,
    "memory_stores": "Use the memories of the gateway: GET /v1/memories",
    "DELETE models/*": "Models belong to their providers",
    "organization": _ADMINISTRATION,
    "organizations": _ADMINISTRATION,
    "projects": _ADMINISTRATION,
    "realtime": _PROVIDER,
    "safety": _PROVIDER,
    "sessions": _AGENTS,
    "skills": _AGENTS,
    "threads": "Use conversations, OpenAI's successor of threads: POST /v1/conversations",
    "tunnels": _AGENTS,
    "user_profiles": _PROVIDER,
    "vaults": _AGENTS,
    "vector_stores": "Name files in requests, or use a memory",
    "videos": _PROVIDER,
    "webhook_endpoints": _PROVIDER,
    "webhook_event_types": _PROVIDER,
}


def instead_of(method: str, path: str) -> str:
    """Return what to do instead of a request that is not served; "" if it is of no known client."""
    route = route_of(path)
    if not route.startswith(_API):
        return ""
    for begin in _begins(route.removeprefix(_API)):
        if advice := _INSTEAD.get(f"{method} {begin}") or _INSTEAD.get(begin):
            return advice
    return ""


def _begins(path: str) -> Iterator[str]:
    """Yield the begins of a path, the longest first, each with `*` for its last segment too."""
    segments = path.split("/", _MAX_SEGMENTS)[:_MAX_SEGMENTS]
    for number in range(len(segments), 0, -1):
        yield "/".join(segments[:number])
        if number > 1 and segments[number - 1]:
            yield "/".join((*segments[: number - 1], "*"))
