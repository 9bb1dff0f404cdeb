"""Methods of the providers' clients that the gateway does not serve, and what to do instead.

Requests for them are answered with 501 in place of 404 or 405. `docs/reference/sdk-methods.md`
lists all methods of the official clients.
"""

from collections.abc import Iterator, Mapping

from facade.aliases import route_of

_API = "/beta/v1/"
_GOOGLE = ("/v1beta/", "/upload/v1beta/")
# Paths of WebSockets of Google's clients end with a method of this service.
_LIVE = "/ws/google.ai.generativelanguage."
_MAX_SEGMENTS = 8

_PROVIDER = "Call the provider itself"
_AGENTS = "Run agents in your program; the gateway serves their requests to models"
_BATCHES = "Use POST /v1/batches or /v1/messages/batches, over any provider"
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
    "videos": _PROVIDER,
    "webhook_endpoints": _PROVIDER,
    "webhook_event_types": _PROVIDER,
}

_CACHES = (
    "Send the content in each request, and Google caches its beginning by itself; a cache of the "
    "operator's account is named in `cachedContent`, if the operator has set pass_stateful"
)
_KEYS = "Give each caller a key of the gateway"
_FINISHED = "The gateway has no operations of this kind: its own requests end with their answer"

# The same for Google's API. A method after a colon stands for that method of any resource.
_INSTEAD_AT_GOOGLE = {
    ":asyncBatchEmbedContent": _BATCHES,
    ":batchGenerateContent": _BATCHES,
    ":computeTokens": "Use models/{model}:countTokens",
    ":editImage": "Use POST /v1/images/edits",
    ":predict": "Use POST /v1/images/generations",
    ":predictLongRunning": _PROVIDER,
    "agents": _AGENTS,
    "auth_tokens": _KEYS,
    "batches": _BATCHES,
    "cachedContents": _CACHES,
    "corpora": "Use vector stores: POST /v1/vector_stores",
    "credentials": _PROVIDER,
    "decisions": _PROVIDER,
    "dynamic": _PROVIDER,
    "environments": _AGENTS,
    "fileSearchStores": "Use vector stores: POST /v1/vector_stores",
    "files:register": "Upload the file: POST /upload/v1beta/files",
    "generatedFiles": _PROVIDER,
    "interactions/*": _KEYS,
    "DELETE models/*": "Models belong to their providers",
    "PATCH models/*": "Models belong to their providers",
    "operations": _FINISHED,
    "triggers": _AGENTS,
    "tunedModels": _PROVIDER,
    "tuningJobs": _PROVIDER,
    "voices": _PROVIDER,
    "webhooks": _PROVIDER,
}

_APIS = (
    (_API, _INSTEAD),
    *((prefix, _INSTEAD_AT_GOOGLE) for prefix in _GOOGLE),
)


def instead_of(method: str, path: str) -> str:
    """Return what to do instead of a request that is not served; "" if it is of no known client."""
    if path.startswith(_LIVE):
        return _PROVIDER
    route = route_of(path)
    for prefix, instead in _APIS:
        if route.startswith(prefix):
            return _advice(instead, method, route.removeprefix(prefix))
    return ""


def _advice(instead: Mapping[str, str], method: str, path: str) -> str:
    _, colon, name = path.rpartition(":")
    if colon and (advice := instead.get(f":{name}")):
        return advice
    for begin in _begins(path):
        if advice := instead.get(f"{method} {begin}") or instead.get(begin):
            return advice
    return ""


def _begins(path: str) -> Iterator[str]:
    """Yield the begins of a path, the longest first, each with `*` for its last segment too."""
    segments = path.split("/", _MAX_SEGMENTS)[:_MAX_SEGMENTS]
    for number in range(len(segments), 0, -1):
        yield "/".join(segments[:number])
        if number > 1 and segments[number - 1]:
            yield "/".join((*segments[: number - 1], "*"))
