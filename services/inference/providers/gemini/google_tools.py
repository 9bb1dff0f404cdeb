"""Google's own tools in place of those of other dialects. Pure.

Sources: ai.google.dev, "Grounding with Google Search", "URL context" and "Code execution".
"""

from collections.abc import Iterable
from typing import Final

from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.inference.providers.native_tools import NativeTool, native_tool
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields

_NAMES: Final = {
    NativeTool.SEARCH: "googleSearch",
    NativeTool.FETCH: "urlContext",
    NativeTool.CODE: "codeExecution",
}
_DROPPED_AS: Final = "tools[].extra"
# Fields of a tool that are not dropped: they say what it is, or are empty.
_READ: Final = ("type", "name", "allowed_domains", "blocked_domains", "filters")
_CONTAINER: Final = "container"
_MAX_USES, _MAX_TOOL_CALLS = "max_uses", "max_tool_calls"
_NEW: Final = {"type": "auto"}
# Fields of the options of a search in chats, without those of hosts.
_SIZE: Final = "search_context_size"
_USUAL_SIZES: Final = (0, 5)  # results of a search without a size, and of a medium one
_OPTIONS: Final = ("user_location", "max_uses", "max_content_tokens")


def write_tools(
    request: GenerateRequest, tools: Iterable[tuple[str, Tool]], fields: RequestFields
) -> list[Json]:
    """Return Google's tools for a request that they can serve; report the options left out.

    Args:
        request: the request; see `may_run_natively`.
        tools: its tools, each with its path.
        fields: decides which parts of the request are sent.

    Raises:
        GatewayError: invalid, for a container that is stored at a provider.
    """
    names: dict[str, None] = {}
    for path, tool in tools:
        kind = native_tool(tool)
        assert kind is not None, "the request is served by Google's tools"
        names[_NAMES[kind]] = None
        _leave_out_options(tool, f"{path}.extra", fields)
    if request.HasField("web_search"):
        names[_NAMES[NativeTool.SEARCH]] = None
        search = request.web_search
        options = [name for name in _OPTIONS if getattr(search, name)]
        size = [_SIZE] if search.max_results not in _USUAL_SIZES else []
        for name in (*options, *size, *search.foreign_fields):
            fields.drop(f"web_search.{name}")
    return [{name: {}} for name in names]


def _leave_out_options(tool: Tool, path: str, fields: RequestFields) -> None:
    options = fields.checked_object(tool.extra.json, path)
    if tool.web.HasField("max_uses") and _MAX_USES not in options:
        fields.drop(f"extra.{_MAX_TOOL_CALLS}")
    read = [*_READ]
    if options.get(_CONTAINER) == _NEW:
        read.append(_CONTAINER)
    fields.leave_out(tool.extra, path, _DROPPED_AS, read=read)
