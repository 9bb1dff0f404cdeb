"""Which requests may be answered from the cache. Pure.

An answer is kept where an equal request would be sent to the provider in the same words. That is
not so of what the gateway remembers, searches or fetches, of files and addresses whose content may
change or go, and of what a provider keeps or does by itself.
"""

from collections.abc import Mapping, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.lazy_request import LazyRequest
from services.inference.memory.split import uses_memory

# Bytes of a request; the keys of larger ones would take long to make.
MAX_REQUEST = 1 << 20

# Fields of a body that name what a provider or the gateway keeps or does.
_STATEFUL = frozenset(
    {
        *("background", "container", "conversation", "mcp_servers", "memory_config", "memory_id"),
        *("plugins", "previous_response_id", "prompt", "search_parameters", "store"),
        *("use_built_in_tools", "web_search_options"),
    }
)
# Types of tools that callers run.
_FUNCTIONS = frozenset({None, "function", "custom"})
# Fields of content that name a file.
_FILES = ("file_id", "file_url")
# Fields of content whose text is an address, or the content itself.
_ADDRESSES = ("url", "image_url")
_CHAINS = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)
# Fields of a call whose content is the tool's own.
_ARGUMENTS = frozenset({"input", "arguments"})


def is_cacheable(request: GenerateRequest, lazy: LazyRequest | None, *, has_search: bool) -> bool:
    """Return whether answers to a request may be kept.

    Args:
        request: the request.
        lazy: its conversation, if it is not complete.
        has_search: whether the gateway searches the web for requests that expect it.
    """
    if (
        request.dialect == conversation_pb2.DIALECT_RESPONSES
        or request.use_built_in_tools
        or request.HasField("web_search")
        or (has_search and request.expects_built_in_tools)
        or uses_memory(request)
        or _has_parameters(request)
        or not _STATEFUL.isdisjoint(_names_in(request.extra.json))
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
    """Return whether steps of a chain have a conversation or tools of their own."""
    return request.fallback in _CHAINS and any(
        step.HasField("parameters") for step in request.fallback_config.steps
    )


def _names_in(extra: bytes) -> Mapping[str, object]:
    parsed = orjson.loads(extra) if extra else {}
    return {name: value for name, value in parsed.items() if value not in (None, False)}


def _is_inline(block: Block) -> bool:
    """Return whether a block has all of its content with it."""
    kind = block.WhichOneof("kind")
    if kind == "media":
        return block.media.WhichOneof("source") == "data"
    if kind == "tool_result":
        return all(_is_inline(part) for part in block.tool_result.blocks)
    return kind != "opaque"


def _is_plain(fields: Mapping[str, object]) -> bool:
    """Return whether the fields of a body name nothing outside of it."""
    tools = fields.get("tools")
    for tool in tools if isinstance(tools, Sequence) else ():
        if not isinstance(tool, Mapping) or tool.get("type") not in _FUNCTIONS:
            return False
    for name, value in fields.items():
        if name in _STATEFUL and value not in (None, False):
            return False
        if name in ("messages", "system") and _refers_outside(value):
            return False
    return True


def _refers_outside(content: object) -> bool:
    """Return whether messages refer to files or addresses."""
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
