"""Options of requests: whether they arrived at an upstream, and what they are dropped as."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.inference.providers.anthropic.sanitizing import JSON_ALONE
from tests.matrix.json_bodies import Json
from tests.matrix.words import (
    CHAT,
    GOOGLE,
    GRPC,
    MESSAGES,
    RESPONSES,
    Conversation,
    Document,
    Image,
    Part,
    Result,
    Text,
    Thought,
)
from tests.upstream.bedrock.wire import to_messages

Arrived = Callable[[Json, Any], bool]


def _same(name: str) -> Arrived:
    return lambda body, value: body.get(name) == value


def _never(body: Json, value: Any) -> bool:
    return False


def _holds(name: str) -> Arrived:
    return lambda body, value: name in _keys(body)


def _keys(value: Any) -> set[str]:
    """Return the names of all fields, at any depth; what a schema names is none."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if not isinstance(value, dict):
        return set()
    schemas = ("parameters", "input_schema", "parametersJsonSchema", "input", "args")
    inner = [_keys(one) for name, one in value.items() if name not in schemas]
    return set(value).union(*inner)


def _config(name: str) -> Arrived:
    return lambda body, value: (body.get("generationConfig") or {}).get(name) == value


def _thinks(body: Json, value: Any) -> bool:
    thinking = (body.get("thinking") or {}).get("type", "disabled") != "disabled"
    return thinking or body.get("reasoning_effort", "none") != "none"


def _does_not_think(body: Json, value: Any) -> bool:
    disabled = (body.get("thinking") or {}).get("type") == "disabled"
    template = body.get("chat_template_kwargs") or {}
    switched_off = template.get("enable_thinking") is False
    return disabled or switched_off or body.get("reasoning_effort") == "none"


def _gemini_thinks(body: Json, value: Any) -> bool:
    thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    return "thinkingLevel" in thinking or "thinkingBudget" in thinking


def _limit(body: Json, value: Any) -> bool:
    return value in (body.get("max_tokens"), body.get("max_completion_tokens"))


def _parallel(body: Json, value: Any) -> bool:
    choice = body.get("tool_choice") or {}
    return choice.get("disable_parallel_tool_use") is (not value)


def _asks_for_json(body: Json, value: Any) -> bool:
    return JSON_ALONE in str(body.get("system")) or JSON_ALONE in str(body["messages"])


def _format(body: Json, value: Any) -> bool:
    return (body.get("response_format") or {}).get("json_schema", {}).get("schema") == value


def _is_json_object(body: Json, value: Any) -> bool:
    return bool((body.get("response_format") or {}).get("type") == "json_object")


def _text_format(body: Json) -> Json:
    form: Json = (body.get("text") or {}).get("format") or {}
    return form


def _reasons(body: Json, value: Any) -> bool:
    return (body.get("reasoning") or {}).get("effort", "none") != "none"


def _does_not_reason(body: Json, value: Any) -> bool:
    return (body.get("reasoning") or {}).get("effort") == "none"


@dataclass(frozen=True)
class Option:
    """An option of a request.

    Attributes:
        openai, anthropic, gemini, responses: tells whether a body of that dialect holds it; where
            `responses` is None, as of `openai`.
        dropped_as: its path by endpoint where an upstream has nothing for it; none where the
            answer would be another without it.
        partly: paths that may be told beside, though it arrived.
    """

    openai: Arrived
    anthropic: Arrived
    gemini: Arrived
    dropped_as: Mapping[str, frozenset[str]] = field(default_factory=dict)
    partly: frozenset[str] = frozenset()
    responses: Arrived | None = None

    def arrived(self, dialect: str, body: Json, value: Any) -> bool:
        """Return whether a body of a dialect holds it."""
        if dialect == "bedrock":
            return self.anthropic(to_messages(body), value)
        check: Arrived = getattr(self, dialect) or self.openai
        return check(body, value)


def _as(*everywhere: str, **endpoints: str) -> dict[str, frozenset[str]]:
    named = {
        **{CHAT: "chat", MESSAGES: "messages", GRPC: "grpc"},
        **{RESPONSES: "responses", GOOGLE: "google"},
    }
    return {
        endpoint: frozenset((*everywhere, *filter(None, [endpoints.get(name)])))
        for endpoint, name in named.items()
    }


_THINKING = _as(
    *("thinking", "thinking.effort", "thinking.budget_tokens"),
    chat="reasoning_effort",
    messages="output_config.effort",
    responses="reasoning.effort",
    google="generationConfig.thinkingConfig",
)
OPTIONS: dict[str, Option] = {
    "max_tokens": Option(
        _limit,
        _same("max_tokens"),
        _config("maxOutputTokens"),
        responses=_same("max_output_tokens"),
    ),
    "stop": Option(_same("stop"), _same("stop_sequences"), _config("stopSequences")),
    "n": Option(_same("n"), _never, _config("candidateCount")),
    "logprobs": Option(
        _same("logprobs"),
        _never,
        _config("responseLogprobs"),
        responses=lambda body, value: "message.output_text.logprobs" in body["include"],
    ),
    "top_logprobs": Option(_same("top_logprobs"), _never, _config("logprobs")),
    "schema": Option(
        _format,
        lambda body, value: "format" in (body.get("output_config") or {}),
        _config("responseJsonSchema"),
        responses=lambda body, value: _text_format(body).get("schema") == value,
    ),
    "json_object": Option(
        _is_json_object,
        _asks_for_json,
        lambda body, value: _config("responseMimeType")(body, "application/json"),
        responses=lambda body, value: _text_format(body).get("type") == "json_object",
    ),
    "temperature": Option(
        _same("temperature"),
        _same("temperature"),
        _config("temperature"),
        _as("temperature", google="generationConfig.temperature"),
    ),
    "top_p": Option(
        _same("top_p"),
        _same("top_p"),
        _config("topP"),
        _as("top_p", google="generationConfig.topP"),
    ),
    "top_k": Option(
        _same("top_k"),
        _same("top_k"),
        _config("topK"),
        _as("top_k", google="generationConfig.topK"),
    ),
    "seed": Option(
        _same("seed"), _never, _config("seed"), _as("seed", google="generationConfig.seed")
    ),
    "presence_penalty": Option(
        _same("presence_penalty"),
        _never,
        _config("presencePenalty"),
        _as("presence_penalty", google="generationConfig.presencePenalty"),
    ),
    "frequency_penalty": Option(
        _same("frequency_penalty"),
        _never,
        _config("frequencyPenalty"),
        _as("frequency_penalty", google="generationConfig.frequencyPenalty"),
    ),
    "user": Option(
        _holds("user"),
        _holds("user_id"),
        _never,
        _as(chat="user", messages="metadata.user_id", grpc="end_user", responses="user"),
    ),
    "service_tier": Option(
        _same("service_tier"), _same("service_tier"), _never, _as("service_tier")
    ),
    "parallel": Option(
        _same("parallel_tool_calls"),
        _parallel,
        _never,
        _as(
            chat="parallel_tool_calls",
            responses="parallel_tool_calls",
            messages="tool_choice.disable_parallel_tool_use",
            grpc="tool_choice.disable_parallel_tool_use",
        ),
    ),
    "effort": Option(_thinks, _thinks, _gemini_thinks, _THINKING, responses=_reasons),
    "budget": Option(
        _thinks,
        _thinks,
        _gemini_thinks,
        _THINKING,
        frozenset({"thinking.budget_tokens"}),
        responses=_reasons,
    ),
    # Gemini 3 thinks a little, whatever is asked.
    "no_thinking": Option(
        _does_not_think, _does_not_think, _never, _THINKING, responses=_does_not_reason
    ),
    # Of messages and tools.
    "marked": Option(
        _holds("cache_control"),
        _holds("cache_control"),
        _never,
        _as(
            *("messages[].content[].cache_control", "tools[].cache_control", "cache_control"),
            grpc="messages[].blocks[].cache_control",
        ),
    ),
    "detail": Option(
        _holds("detail"),
        _never,
        _never,
        _as(
            chat="messages[].content[].image_url.detail",
            grpc="messages[].blocks[].media.detail",
            responses="input[].content[].detail",
        ),
        responses=lambda body, value: "detail" in _keys(body["input"]),
    ),
    "filename": Option(
        lambda body, value: value in str(body),
        lambda body, value: value in str(body),
        lambda body, value: value in str(body),
        _as(
            chat="messages[].content[].file.filename",
            messages="messages[].content[].title",
            grpc="messages[].blocks[].media.name",
            responses="input[].content[].filename",
        ),
    ),
    "is_error": Option(
        _never,
        _holds("is_error"),
        lambda body, value: '"error"' in str(body) or "'error'" in str(body),
        _as(
            messages="messages[].content[].is_error",
            google="contents[].parts[].functionResponse.response.error",
            grpc="messages[].blocks[].tool_result.is_error",
        ),
    ),
    "strict": Option(
        _holds("strict"),
        _holds("strict"),
        _never,
        _as("tools[].strict", chat="tools[].function.strict"),
    ),
    "name": Option(_holds("name"), _never, _never, _as("messages[].name")),
}


def given(conversation: Conversation, endpoint: str) -> Iterator[tuple[str, Any]]:
    """Return the options of a conversation as an endpoint tells them, with their values."""
    yield from conversation.options.items()
    parts = [part for turn in conversation.turns for part in _all_parts(turn.parts)]
    tools = conversation.tools
    if any(isinstance(part, Text) and part.marked for part in parts):
        yield "marked", True
    elif any(tool.marked for tool in tools):
        yield "marked", True
    if endpoint != MESSAGES and any(isinstance(part, Image) and part.detail for part in parts):
        yield "detail", True
    names = [part.name for part in parts if isinstance(part, Document)]
    if any(names):
        yield "filename", names[0]
    if endpoint not in (CHAT, RESPONSES) and any(
        isinstance(part, Result) and part.is_error for part in parts
    ):
        yield "is_error", True
    if any(tool.strict for tool in tools):
        yield "strict", True
    if endpoint != MESSAGES and any(turn.name for turn in conversation.turns):
        yield "name", True


def _all_parts(parts: Any) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Result):
            yield from part.parts


def has_thoughts(conversation: Conversation) -> bool:
    """Return whether earlier turns hold thoughts."""
    return any(isinstance(part, Thought) for turn in conversation.turns for part in turn.parts)
