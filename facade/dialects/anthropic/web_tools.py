"""Translate Anthropic's web tools into gateway tools."""

from collections.abc import Mapping
from typing import Any

from facade.dialects.web import domains, location_in_words
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid

# Names of gateway tools.
BUILT_IN = ("web_search", "web_fetch")

_KINDS = {"web_search_": pb.WebTool.KIND_SEARCH, "web_fetch_": pb.WebTool.KIND_FETCH}
_KNOWN = frozenset(
    {
        *("type", "name", "max_uses", "allowed_domains", "blocked_domains"),
        *("user_location", "max_content_tokens"),
    }
)
_UINT32_MAX = 2**32 - 1


def web_tool(tool: Mapping[str, Any], path: str) -> pb.WebTool | None:
    """Translate a web tool of Anthropic's; return None for any other tool.

    Raises:
        GatewayError: invalid, naming the field of a wrong type.
    """
    kind = _kind(tool)
    if kind is None:
        return None
    web = pb.WebTool(
        kind=kind,
        max_uses=_count(tool, "max_uses", path),
        max_content_tokens=_count(tool, "max_content_tokens", path),
        allowed_domains=domains(tool.get("allowed_domains"), f"{path}.allowed_domains"),
        blocked_domains=domains(tool.get("blocked_domains"), f"{path}.blocked_domains"),
        user_location=location_in_words(tool.get("user_location"), f"{path}.user_location"),
        foreign_fields=[
            name for name, value in tool.items() if name not in _KNOWN and value is not None
        ],
    )
    if web.allowed_domains and web.blocked_domains:
        where = f"{path}.blocked_domains"
        raise invalid(where, f"{where}: cannot be given together with allowed_domains")
    return web


def _kind(tool: Mapping[str, Any]) -> pb.WebTool.Kind.ValueType | None:
    for prefix, kind in _KINDS.items():
        if str(tool["type"]).startswith(prefix) and tool.get("name") in (None, prefix[:-1]):
            return kind
    return None


def _count(tool: Mapping[str, Any], name: str, path: str) -> int | None:
    value = tool.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _UINT32_MAX:
        raise invalid(f"{path}.{name}", f"{path}.{name}: must be an integer of at least 1")
    return value
