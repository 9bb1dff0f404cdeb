"""Translate OpenAI's web search options."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from facade.dialects.web import domains, location_in_words
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

# Number of results, by `search_context_size`.
_RESULTS = {"low": 3, "medium": 5, "high": 10}
_KNOWN = frozenset({"search_context_size", "user_location", "filters"})


def web_search(options: Mapping[str, Any], path: str) -> pb.WebTool:
    """Translate `web_search_options` at `path`.

    Options in another format than OpenAI's belong to a provider and are accepted.

    Raises:
        GatewayError: invalid, naming the field of a wrong type.
    """
    size, place = options.get("search_context_size"), options.get("user_location")
    for name, value, kind in (("search_context_size", size, str), ("user_location", place, dict)):
        if value is not None and not isinstance(value, kind):
            type_in_words = "a string" if kind is str else "an object"
            raise invalid(f"{path}.{name}", f"{path}.{name}: must be {type_in_words}")
    known_fields = set(_KNOWN)
    if size is not None and size not in _RESULTS:
        known_fields.remove("search_context_size")
    if place is not None and "approximate" not in place:
        known_fields.remove("user_location")
    near = (place or {}).get("approximate")
    return _search(options, known_fields, near, f"{path}.user_location.approximate", path)


def web_search_tool(tool: Mapping[str, Any], path: str) -> pb.WebTool:
    """Translate a tool `web_search` of responses at `path`, which has been validated.

    Raises:
        GatewayError: invalid, naming the field of a wrong type.
    """
    known_fields = {*_KNOWN, "type"}
    if tool.get("search_context_size") not in (None, *_RESULTS):
        known_fields.remove("search_context_size")
    return _search(tool, known_fields, tool.get("user_location"), f"{path}.user_location", path)


def _search(
    options: Mapping[str, Any], known_fields: Set[str], near: object, place: str, path: str
) -> pb.WebTool:
    """Return the tool for `options` at `path`; `near` is the user's location, at `place`."""
    size = options.get("search_context_size")
    return pb.WebTool(
        kind=pb.WebTool.KIND_SEARCH,
        max_results=_RESULTS.get(size or "", _RESULTS["medium"]),
        user_location=location_in_words(near, place),
        allowed_domains=_domains(options.get("filters"), f"{path}.filters"),
        foreign_fields=[
            name
            for name, value in options.items()
            if name not in known_fields and value is not None
        ],
    )


def _domains(filters: object, path: str) -> Sequence[str]:
    if filters is None:
        return ()
    if not isinstance(filters, dict):
        raise invalid(path, f"{path}: must be an object with `allowed_domains`")
    return domains(filters.get("allowed_domains"), f"{path}.allowed_domains")
