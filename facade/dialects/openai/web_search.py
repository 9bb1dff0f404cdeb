"""OpenAI's options for searching the web."""

from collections.abc import Mapping
from typing import Any

from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

# Results of a search, by `search_context_size`.
_RESULTS = {"low": 3, "medium": 5, "high": 10}
_KNOWN = frozenset({"search_context_size", "user_location", "filters"})
_PLACE = ("city", "region", "country", "timezone")
_MAX_PLACE = 100  # characters of each part of a location


def web_search(options: Mapping[str, Any], path: str) -> pb.WebTool:
    """Return what `web_search_options` at `path` ask for.

    Raises:
        GatewayError: invalid, naming the field of a wrong type.
    """
    size = options.get("search_context_size")
    if size is not None and size not in _RESULTS:
        where = f"{path}.search_context_size"
        raise invalid(where, f"{where}: takes low, medium or high")
    return pb.WebTool(
        kind=pb.WebTool.KIND_SEARCH,
        max_results=_RESULTS[size or "medium"],
        user_location=_location(options.get("user_location"), f"{path}.user_location"),
        allowed_domains=_domains(options.get("filters"), f"{path}.filters"),
        foreign_fields=[
            name for name, value in options.items() if name not in _KNOWN and value is not None
        ],
    )


def _location(given: object, path: str) -> str:
    if given is None:
        return ""
    place = given.get("approximate") if isinstance(given, dict) else None
    if not isinstance(place, dict):
        raise invalid(path, f"{path}: takes an object with the type and `approximate`")
    parts = []
    for name in _PLACE:
        part = place.get(name)
        if part is None:
            continue
        if not isinstance(part, str) or len(part) > _MAX_PLACE or not part.isprintable():
            where = f"{path}.approximate.{name}"
            raise invalid(where, f"{where}: takes at most {_MAX_PLACE} printable characters")
        parts.append(f"time zone {part}" if name == "timezone" else part)
    return ", ".join(filter(None, parts))


def _domains(given: object, path: str) -> list[str]:
    if given is None:
        return []
    domains = given.get("allowed_domains") if isinstance(given, dict) else None
    if not isinstance(domains, list) or not all(isinstance(one, str) and one for one in domains):
        where = f"{path}.allowed_domains"
        raise invalid(where, f"{where}: takes a list of domains")
    return domains
