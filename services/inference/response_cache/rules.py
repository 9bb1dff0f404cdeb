"""Rules for cacheable requests. Pure.

An answer is cacheable if an equal request would be sent to the provider unchanged. That excludes
requests with memory or with the gateway's own tools, references to files and URLs whose content may
change or be deleted, and state and tools of the provider.
"""

from collections.abc import Mapping, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.lazy_request import LazyRequest
from services.inference.memory.split import uses_memory
from services.inference.request.stored_references import find_reference

# Maximum bytes of a request: the keys of larger ones would take long to compute.
MAX_REQUEST = 1 << 20

# Fields of a body that refer to tools of the provider, or to tools and state of the gateway. Those
# that refer to state of the provider are found by `find_reference`.
_OUTSIDE = frozenset(
    {
        *("background", "memory_config", "memory_id", "plugins", "search_parameters"),
        *("use_built_in_tools", "web_search_options"),
    }
)
# Types of tools that callers run.
_FUNCTIONS = frozenset({None, "function", "custom"})
# Fields of content that reference a file.
_FILES = ("file_id", "file_url")
# Fields of content whose text is a URL, or a `data:` URL with the content itself.
_ADDRESSES = ("url", "image_url")
_CONVERSATION = ("messages", "system", "tools")
_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
# Fields of a tool call whose content is defined by the tool.
_ARGUMENTS = frozenset({"input", "arguments"})


def is_cacheable(request: GenerateRequest, lazy: LazyRequest | None, *, has_search: bool) -> bool:
    """Return whether answers to a request may be cached.

    Args:
        request: the request.
        lazy: the lazy request; None if the request is complete.
        has_search: whether the gateway searches the web for requests that expect it.
    """
    if (
        request.dialect == conversation_pb2.DIALECT_RESPONSES
        or request.use_built_in_tools
        or request.HasField("web_search")
        or (has_search and request.built_in_tools_by_default)
        or uses_memory(request)
        or _has_parameters(request)
        or (request.extra.json and _are_outside(orjson.loads(request.extra.json)))
    ):
        return False
    if lazy is not None:
        return lazy.ByteSize() <= MAX_REQUEST and _is_plain(lazy.fields)
    return (
        request.ByteSize() <= MAX_REQUEST
        and not any(tool.opaque for tool in request.tools)
        and all(_is_inline(block) for message in request.messages for block in message.blocks)
    )


def _has_parameters(request: GenerateRequest) -> bool:
    """Return whether steps of a chain have parameters, such as a conversation or tools."""
    return request.fallback in _CHAINS and any(
        step.HasField("parameters") for step in request.fallback_config.steps
    )


def _are_outside(settings: Mapping[str, object]) -> bool:
    """Return whether one of the settings refers to anything outside of the request."""
    set_names = {name for name, value in settings.items() if value not in (None, False)}
    return not _OUTSIDE.isdisjoint(set_names) or find_reference(settings) is not None


def _is_inline(block: Block) -> bool:
    """Return whether a block contains all of its content, without references."""
    kind = block.WhichOneof("kind")
    if kind == "media":
        return block.media.WhichOneof("source") == "data"
    if kind == "tool_result":
        return all(_is_inline(part) for part in block.tool_result.blocks)
    return kind != "opaque"


def _is_plain(fields: Mapping[str, object]) -> bool:
    """Return whether the fields of a body refer to nothing outside of it."""
    tools = fields.get("tools")
    for tool in tools if isinstance(tools, Sequence) else ():
        if not isinstance(tool, Mapping) or tool.get("type") not in _FUNCTIONS:
            return False
    if any(_refers_outside(fields.get(name)) for name in ("messages", "system")):
        return False
    settings = {name: value for name, value in fields.items() if name not in _CONVERSATION}
    return not _are_outside(settings)


def _refers_outside(content: object) -> bool:
    """Return whether messages refer to files or URLs."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if any(value.get(name) for name in _FILES):
                return True
            for name in _ADDRESSES:
                address = value.get(name)
                if isinstance(address, str) and not address.startswith("data:"):
                    return True
            waiting += [inner for name, inner in value.items() if name not in _ARGUMENTS]
        elif isinstance(value, list):
            waiting += value
    return False
