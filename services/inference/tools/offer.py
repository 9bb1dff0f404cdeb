"""Select the gateway tools that are offered to a model. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, ToolChoice, WebTool
from services.common.errors import GatewayError, invalid, unsupported
from services.common.text.texts import quoted
from services.inference.providers.base import Target
from services.inference.providers.native_tools import (
    NativeTool,
    may_run_natively,
    native_tool,
)
from services.inference.providers.request_fields import is_optional_tool
from services.inference.tools import file_search
from services.inference.tools.domains import domain_of
from services.inference.tools.history import has_server_blocks

SEARCH = "web_search"
FETCH = "web_fetch"

_WEB = {WebTool.KIND_SEARCH: SEARCH, WebTool.KIND_FETCH: FETCH}
_NAMES = {**_WEB, WebTool.KIND_FILES: file_search.NAME}
_SEARCH_OPTIONS = "web_search"
_SETTING = "this gateway has no search engine; the operator can configure one in [tools.web_search]"
_NO_PAGES = "this gateway does not fetch web pages"
_NO_FILES = "this gateway has no vector stores"
# Name patterns of models of OpenAI's dialect that search the web themselves (OpenAI's search
# models, Perplexity's, OpenRouter's `:online`).
_SEARCHES_ITSELF = ("-search-preview", "-search-api", ":online")
_SEARCHERS = ("sonar", "perplexity/")

# Share of a model's context window that one tool result may fill, and the minimum in tokens.
_PART = 8
_LEAST_TOKENS = 256

_SEARCH_WORDS = (
    "Search the web. Returns pages with their addresses and what they say. Use it for what is "
    "recent, may have changed, or is not known for certain, and name the addresses of the pages "
    "that an answer rests on, as Markdown links."
)
_FETCH_WORDS = (
    "Fetch one page of the web and return its text. Takes addresses that the user wrote or "
    "another tool returned, none that is made up."
)
_SEARCH_SCHEMA = orjson.dumps(
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to search for."}},
        "required": ["query"],
        "additionalProperties": False,
    }
)
_FETCH_SCHEMA = orjson.dumps(
    {
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "format": "uri",
                "description": "The whole http or https address of the page.",
            }
        },
        "required": ["url"],
        "additionalProperties": False,
    }
)


class Available(NamedTuple):
    """The gateway tools that can run."""

    searches: bool
    fetches: bool
    files: bool = False

    @property
    def has_web(self) -> bool:
        """Whether a tool for the web can run, without which there are no built-in tools."""
        return self.searches or self.fetches

    def has(self, kind: WebTool.Kind.ValueType) -> bool:
        """Return whether a kind of tool can run."""
        if kind == WebTool.KIND_FILES:
            return self.files
        return self.searches if kind == WebTool.KIND_SEARCH else self.fetches


NOTHING = Available(searches=False, fetches=False)


class Offered(NamedTuple):
    """A request with gateway tools.

    Attributes:
        tools: the offered gateway tools, by the name given to the model.
        dropped: paths of dropped fields.
    """

    tools: Mapping[str, WebTool]
    dropped: Sequence[str]


def may_run_tools(
    request: GenerateRequest,
    targets: Iterable[tuple[Dialect.ValueType, Target]],
    available: Available,
    *,
    has_called: bool,
) -> bool:
    """Return whether a request may need gateway tools.

    Args:
        request: the request, with the parameters of the plan's steps.
        targets: the models of the plan, each with its provider's dialect.
        available: the tools that can run.
        has_called: whether the conversation has calls of gateway tools.
    """
    parts = [request]
    if request.HasField("fallback_config"):
        parts += [step.parameters for step in request.fallback_config.steps]
    searches = any(part.HasField("web_search") for part in parts)
    web = [tool for part in parts for tool in part.tools if tool.HasField("web")]
    if request.use_built_in_tools or (web and has_called):
        return True
    if not (searches or web):
        return False
    has_own_tools = any(
        part.tools or part.HasField("web_search") or part.HasField("tool_choice")
        for part in parts[1:]
    )
    return any(
        (has_own_tools or not _runs_natively(request, target, available))
        and (
            not all(_runs_at_provider(tool, dialect) for tool in web)
            or (searches and not _is_served(target, dialect, available))
        )
        for dialect, target in targets
    )


def offer_tools(
    request: GenerateRequest,
    dialect: Dialect.ValueType,
    target: Target,
    available: Available,
) -> Offered:
    """Add the gateway tools to a request for one model.

    Web tools are sent unchanged to providers of their dialect, and OpenAI's search options to
    models known to search by themselves. Providers with tools of their own in place of all of the
    request's get those. A caller's tool takes precedence over a gateway tool of the same name.

    Args:
        request: modified in place.
        dialect: the provider's dialect.
        target: the model.
        available: the tools that can run.

    Raises:
        GatewayError: unsupported, if neither the provider nor the gateway has a required tool.
    """
    tools: dict[str, WebTool] = {}
    dropped: list[str] = []
    # A conversation with results of gateway tools continues with gateway tools.
    has_no_results = not has_server_blocks(request.messages)
    is_native = _runs_natively(request, target, available)
    for index, tool in enumerate(request.tools):
        runs_at_provider = is_native or _runs_at_provider(tool, dialect)
        if not tool.HasField("web") or (has_no_results and runs_at_provider):
            continue
        path = f"tools[{index}]"
        if not available.has(tool.web.kind):
            if runs_at_provider:
                continue
            if is_optional_tool(tool, request):
                continue  # the adapter leaves it out
            raise _lacking(path, tool.web, target)
        dropped += [f"{path}.extra.{name}" for name in tool.web.foreign_fields]
        _check_domains(tool.web, f"{path}.web")
        tools[_NAMES[tool.web.kind]] = _copy(tool.web)
        tool.CopyFrom(_definition(tool.web))
    taken_names = {tool.name for tool in request.tools}
    is_served = is_native or _is_served(target, dialect, available)
    if request.HasField("web_search") and not is_served:
        if not available.searches:
            raise _lacking(_SEARCH_OPTIONS, request.web_search, target)
        _serve_options(request, taken_names, tools, dropped)
    if request.use_built_in_tools:
        dropped += _add_own(request, available, taken_names, tools)
    for offered in tools.values():
        _fit(offered, target)
    if tools and request.n > 1:
        raise unsupported("n", "n: must be 1 if the gateway runs tools for the answer")
    return Offered(tools, dropped)


def _runs_natively(request: GenerateRequest, target: Target, available: Available) -> bool:
    """Return whether the model's provider runs the tools of a request, and the gateway none."""
    if not may_run_natively(request, target) or (request.use_built_in_tools and available.has_web):
        return False
    if target.native_tools:
        return True
    kinds = [tool.web.kind for tool in request.tools if tool.HasField("web")]
    runs_programs = NativeTool.CODE in map(native_tool, request.tools)
    if request.HasField("web_search"):
        kinds.append(WebTool.KIND_SEARCH)
    return runs_programs or not all(map(available.has, kinds))


def _runs_at_provider(tool: Tool, dialect: Dialect.ValueType) -> bool:
    """Return whether a provider of a dialect runs a web tool itself."""
    return tool.opaque and tool.extra.dialect == dialect


def _add_own(
    request: GenerateRequest, available: Available, taken_names: set[str], tools: dict[str, WebTool]
) -> list[str]:
    """Offer all gateway tools whose names are not taken, unless tool calls are disabled.

    Returns:
        Paths of tools that are unavailable or have a taken name.
    """
    missing = []
    for kind, name in _WEB.items():
        if request.tool_choice.mode == ToolChoice.MODE_NONE or name in tools:
            continue
        if available.has(kind) and name not in taken_names:
            tools[name] = WebTool(kind=kind)
            request.tools.append(_definition(tools[name]))
        else:
            missing.append(f"use_built_in_tools.{name}")
    choice, names = request.tool_choice, [tool.name for tool in request.tools]
    if choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL) and not names:
        raise unsupported("tool_choice", "tool_choice: no tools are available")
    # A tool without a name is a provider's toolset, whose names are unknown.
    if choice.mode == ToolChoice.MODE_TOOL and choice.name not in names and all(names):
        why = f"no tool {quoted(choice.name)} in tools or among the gateway's tools"
        raise unsupported("tool_choice.name", f"tool_choice.name: {why}")
    return missing


def close_tools(request: GenerateRequest, tools: Mapping[str, WebTool]) -> None:
    """Keep a model from calling gateway tools.

    A conversation with calls needs tool definitions: if the caller has no tools, the gateway tools
    stay in the request and tool choice is `none`.
    """
    remaining_tools = [tool for tool in request.tools if tool.name not in tools]
    if remaining_tools:
        del request.tools[:]
        request.tools.extend(remaining_tools)
    elif request.tools:
        request.tool_choice.mode = ToolChoice.MODE_NONE
    note = "The tools for searches cannot be used any more. Answer with what is known by now."
    request.messages.append(
        Message(role=conversation_pb2.ROLE_USER, blocks=[conversation_pb2.Block(text=note)])
    )


def release_choice(request: GenerateRequest, tools: Mapping[str, WebTool]) -> None:
    """Reset a forced tool choice to automatic after a call of a gateway tool."""
    choice = request.tool_choice
    if choice.mode == ToolChoice.MODE_ANY or (
        choice.mode == ToolChoice.MODE_TOOL and choice.name in tools
    ):
        choice.mode = ToolChoice.MODE_AUTO
        choice.ClearField("name")
        choice.ClearField("extra")


def _serve_options(
    request: GenerateRequest, taken_names: set[str], tools: dict[str, WebTool], dropped: list[str]
) -> None:
    """Offer web search in place of the request's search options."""
    search = _copy(request.web_search)
    request.ClearField("web_search")
    if SEARCH in taken_names:
        dropped.append(_SEARCH_OPTIONS)
        return
    dropped += [f"{_SEARCH_OPTIONS}.{name}" for name in search.foreign_fields]
    _check_domains(search, _SEARCH_OPTIONS)
    tools[SEARCH] = search
    request.tools.append(_definition(search))


def _check_domains(tool: WebTool, path: str) -> None:
    for name in ("allowed_domains", "blocked_domains"):
        for index, rule in enumerate(getattr(tool, name)):
            try:
                domain_of(rule)
            except GatewayError as error:
                where = f"{path}.{name}[{index}]"
                raise invalid(where, f"{where}: {error.message}") from None


def _is_served(target: Target, dialect: Dialect.ValueType, available: Available) -> bool:
    """Return whether the provider handles OpenAI's search options.

    Without a search backend, all providers of that dialect get them.
    """
    name = target.upstream
    return dialect == conversation_pb2.DIALECT_OPENAI and (
        not available.searches
        or any(word in name for word in _SEARCHES_ITSELF)
        or name.startswith(_SEARCHERS)
    )


def _fit(tool: WebTool, target: Target) -> None:
    """Limit the size of a tool result by the model's context window, if known."""
    if target.context_window:
        max_tokens = max(_LEAST_TOKENS, target.context_window // _PART)
        if not tool.HasField("max_content_tokens") or tool.max_content_tokens > max_tokens:
            tool.max_content_tokens = max_tokens


def _lacking(path: str, tool: WebTool, target: Target) -> Exception:
    if tool.kind == WebTool.KIND_FILES:
        return unsupported(path, f"{path}: {_NO_FILES}")
    does = "search the web" if tool.kind == WebTool.KIND_SEARCH else "fetch pages"
    why = _SETTING if tool.kind == WebTool.KIND_SEARCH else _NO_PAGES
    if target.native_tools is not False:
        does = f"{does} itself beside functions, in a forced call or in some hosts alone"
        return unsupported(path, f"{path}: {target.name} cannot {does}, and {why}")
    return unsupported(path, f"{path}: {target.name} cannot {does} itself, and {why}")


def _copy(tool: WebTool) -> WebTool:
    copy = WebTool()
    copy.CopyFrom(tool)
    return copy


def _definition(tool: WebTool) -> Tool:
    """Return a tool's definition for the model."""
    if tool.kind == WebTool.KIND_FILES:
        return file_search.definition()
    if tool.kind == WebTool.KIND_FETCH:
        return Tool(name=FETCH, description=_FETCH_WORDS, input_schema=_FETCH_SCHEMA)
    words = _SEARCH_WORDS
    if tool.user_location:
        words += f" The user is in or near {tool.user_location}."
    return Tool(name=SEARCH, description=words, input_schema=_SEARCH_SCHEMA)
