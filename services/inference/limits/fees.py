"""What a request may be billed beside its tokens at the standard price. Pure.

A service tier, a speed or a region may have prices of its own, which are not known, and tools that
run at the provider have fees. Under a budget, a request whose highest cost is not known is refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest, Tool
from services.common.messages.lazy_request import LazyRequest
from services.inference.media import media_blocks
from services.inference.pricing.price import Unit

# The values of fields at which a request costs at most the standard price. Flexible tiers and
# batches are cheaper, and are charged at the standard price.
_STANDARD: Mapping[str, frozenset[str]] = {
    "service_tier": frozenset({"auto", "default", "standard", "standard_only", "flex", "batch"}),
    "speed": frozenset({"standard"}),
    "inference_geo": frozenset({"global", "not_available"}),
}
# Fields that add searches with fees that providers do not report.
_OPTIONS: Final = "web_search_options"
_FEES = ("plugins", _OPTIONS)
# Types of tools without fees: those that the caller runs, and those that only use tokens. A type
# that ends with `_` has a date behind it.
_FREE_TOOLS: Final = (
    *("function", "custom", "bash_", "text_editor_", "memory_", "computer", "web_fetch_"),
    *("tool_search", "local_shell", "apply_patch", "mcp", "namespace"),
)
# Google's own, which only use tokens, and its search.
_FREE_AT_GOOGLE: Final = frozenset({"functionDeclarations", "urlContext", "codeExecution"})
_SEARCHES_AT_GOOGLE: Final = frozenset({"googleSearch", "googleSearchRetrieval"})
# Anthropic's search, whose uses are reported and priced; and the uses assumed without `max_uses`.
_SEARCH: Final = re.compile(r"web_search_\d{8}")
_SEARCHES: Final = 10
_ANY_SEARCH: Final = "web_search"
_HOUR: Final = b'"1h"'
_INPUTS: Mapping[MediaKind.ValueType, Unit] = {
    conversation_pb2.MEDIA_KIND_IMAGE: Unit.INPUT_IMAGE,
    conversation_pb2.MEDIA_KIND_AUDIO: Unit.INPUT_AUDIO,
    conversation_pb2.MEDIA_KIND_VIDEO: Unit.INPUT_VIDEO,
}
_OUTPUTS: Mapping[str, Unit] = {"audio": Unit.OUTPUT_AUDIO, "image": Unit.OUTPUT_IMAGE}


class Fees(NamedTuple):
    """What a request may be billed beside its tokens at the standard price.

    Attributes:
        unpriced: the path of the first field whose price is never known, and the remedy; or None.
        inputs, outputs, searches: as in `MostUsage`.
        search_path: the path of the tool that searches, or "".
        translated_searches: searches by a provider of another dialect with a tool of its own.
    """

    unpriced: tuple[str, str] | None = None
    inputs: frozenset[Unit] = frozenset()
    outputs: frozenset[Unit] = frozenset()
    searches: int = 0
    search_path: str = ""
    translated_searches: int = 0


def fees_of(sent: GenerateRequest | LazyRequest | EmbedRequest | ForwardRequest) -> Fees:
    """Return the fees of a request."""
    if isinstance(sent, EmbedRequest | ForwardRequest):
        return Fees()
    inputs: set[Unit] = set()
    if isinstance(sent, LazyRequest):
        request = sent.request
        tools = _lazy_tools(sent)
        value = partial(_lazy_value, sent, _extra_of(request))
        if any(_HOUR in sent.json_of(name) for name in sent.fields):
            inputs.add(Unit.CACHE_WRITE_1H)
    else:
        request = sent
        tools = [(f"tools[{index}]", *_type_of(tool)) for index, tool in enumerate(request.tools)]
        value = partial(_value, request, _extra_of(request))
        inputs.update(_inputs_of(request))
    unpriced = next(_unpriced(value), None)
    searches, search_path, translated = 0, "", 0
    if value(_OPTIONS) is not None:
        search_path, translated = _OPTIONS, _SEARCHES
    for path, kind, tool in tools:
        if kind.startswith(_ANY_SEARCH):
            search_path, translated = path, translated + _SEARCHES
        if kind in _SEARCHES_AT_GOOGLE:
            search_path, searches = path, searches + _SEARCHES
        elif _SEARCH.fullmatch(kind):
            uses = tool.get("max_uses")
            searches += uses if type(uses) is int and uses > 0 else _SEARCHES
        elif (
            unpriced is None
            and kind
            and kind not in _FREE_AT_GOOGLE
            and not kind.startswith(_FREE_TOOLS)
        ):
            unpriced = path, f"tools of the type {kind} have fees that the gateway does not know"
    outputs = frozenset(_OUTPUTS[name] for name in request.output_modalities if name in _OUTPUTS)
    return Fees(unpriced, frozenset(inputs), outputs, searches, search_path, translated)


def _unpriced(value: "partial[object]") -> Iterator[tuple[str, str]]:
    """Yield the paths of fields with unknown prices, each with the remedy."""
    for name, standard in _STANDARD.items():
        parameter = value(name)
        if parameter not in (None, "") and (
            not isinstance(parameter, str) or parameter not in standard
        ):
            yield name, f"its price is not known; omit it, or send {sorted(standard)[0]!r}"
    for name in _FEES:
        if value(name) not in (None, [], ""):
            yield name, "its fees are not known; omit it"


def _extra_of(request: GenerateRequest) -> Mapping[str, Any]:
    """Return the fields without a canonical name."""
    if not request.HasField("extra"):
        return {}
    extra = orjson.loads(request.extra.json)
    return extra if isinstance(extra, dict) else {}


def _value(request: GenerateRequest, extra: Mapping[str, Any], name: str) -> object:
    if name == "service_tier":
        return request.service_tier
    return extra.get(name)


def _lazy_value(lazy: LazyRequest, extra: Mapping[str, Any], name: str) -> object:
    if json := lazy.json_of(name):
        value: object = orjson.loads(json)
        return value
    return _value(lazy.request, extra, name)


def _type_of(tool: Tool) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a tool, "" for a function, and its fields."""
    if not tool.opaque:
        return "", {}
    fields = orjson.loads(tool.extra.json)
    return _kind_of(fields), fields if isinstance(fields, dict) else {}


def _lazy_tools(lazy: LazyRequest) -> Sequence[tuple[str, str, Mapping[str, Any]]]:
    json = lazy.json_of("tools")
    tools = orjson.loads(json) if json else []
    return [(f"tools[{index}]", _kind_of(tool), tool) for index, tool in enumerate(tools or [])]


def _kind_of(fields: object) -> str:
    """Return the type of a tool; functions of Anthropic's dialect have none."""
    if not isinstance(fields, dict):
        return "unknown"
    kind = fields.get("type", "")
    if kind:
        return str(kind)
    return "" if "name" in fields else next(iter(fields), "unknown")


def _inputs_of(request: GenerateRequest) -> Iterator[Unit]:
    """Yield the units of which a request's input tokens may be."""
    for block in media_blocks(request.messages):
        if unit := _INPUTS.get(block.media.kind):
            yield unit
    if _HOUR in request.cache_control or any(_HOUR in tool.cache_control for tool in request.tools):
        yield Unit.CACHE_WRITE_1H
    elif any(_HOUR in one.cache_control for message in request.messages for one in message.blocks):
        yield Unit.CACHE_WRITE_1H
