"""Wire types of Anthropic's messages: bodies of POST …/messages and …/count_tokens.

They validate a body directly from its bytes and describe it in OpenAPI. Unknown fields are
accepted, as are blocks, sources and tools of unknown types; the translator keeps them for providers
of the same dialect. Null in an optional field is the same as omitting it. Lists have TypedDicts, as
100,000 messages as models take a third more memory.
"""

import re
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import ExtensionFields
from facade.dialects.field_types import (
    MAX_BLOCKS,
    MAX_MESSAGES,
    MAX_STOP_SEQUENCES,
    MAX_TOOLS,
    UINT32_MAX,
    Name,
)
from facade.dialects.validation import UNTYPED

MIN_THINKING_BUDGET = 1024
MAX_TOOL_NAME = 128  # characters

# Types are built on first use: a process uses few of them.
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

_Text = Annotated[str, Field(min_length=1)]
_MIME_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.IGNORECASE | re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]\S*", re.IGNORECASE)


def _mime_type(text: str) -> str:
    if _MIME_TYPE.fullmatch(text) is None:
        raise ValueError("must be a MIME type, such as image/png or application/pdf")
    return text


def _web_address(text: str) -> str:
    if _WEB_ADDRESS.fullmatch(text) is None:
        raise ValueError("must be an http:// or https:// URL")
    return text


def _tag_by_type(*names: str) -> Discriminator:
    """Return a discriminator of a union by the object's `type`; other types are `#other`."""
    tags = {name: f"#{name}" for name in names}

    def tag(value: Any) -> str | None:
        if isinstance(value, dict):
            kind = value.get("type")
            return tags.get(kind, "#other") if isinstance(kind, str) else UNTYPED
        return None

    return Discriminator(tag)


@with_config(_OPEN)
class CacheControl(TypedDict):
    """A point where the provider's prompt cache may end."""

    type: Annotated[str, Field(description="`ephemeral`.")]


@with_config(_OPEN)
class Other(TypedDict):
    """An object of an unknown type, passed on to providers of this dialect."""

    type: str


@with_config(_OPEN)
class Base64Source(TypedDict):
    """The medium's bytes."""

    type: Literal["base64"]
    media_type: Annotated[
        str, AfterValidator(_mime_type), Field(description="MIME type, such as `image/png`.")
    ]
    data: Annotated[_Text, Field(description="Content in base64.")]


@with_config(_OPEN)
class UrlSource(TypedDict):
    """A medium on the web."""

    type: Literal["url"]
    url: Annotated[
        str, AfterValidator(_web_address), Field(description="An http:// or https:// URL.")
    ]


@with_config(_OPEN)
class FileSource(TypedDict):
    """A medium in the gateway's file store."""

    type: Literal["file"]
    file_id: Annotated[_Text, Field(description="Id of the file.")]


@with_config(_OPEN)
class TextSource(TypedDict):
    """A document of plain text."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: Annotated[_Text, Field(description="The text.")]


ImageSource = Annotated[
    Annotated[Base64Source, Tag("#base64")]
    | Annotated[UrlSource, Tag("#url")]
    | Annotated[FileSource, Tag("#file")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("base64", "url", "file"),
]
DocumentSource = Annotated[
    Annotated[Base64Source, Tag("#base64")]
    | Annotated[UrlSource, Tag("#url")]
    | Annotated[FileSource, Tag("#file")]
    | Annotated[TextSource, Tag("#text")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("base64", "url", "file", "text"),
]


class _Cacheable(TypedDict):
    cache_control: NotRequired[CacheControl | None]


@with_config(_OPEN)
class TextBlock(_Cacheable):
    """Text; empty text is dropped."""

    type: Literal["text"]
    text: str


@with_config(_OPEN)
class ImageBlock(_Cacheable):
    """An image."""

    type: Literal["image"]
    source: ImageSource


@with_config(_OPEN)
class DocumentBlock(_Cacheable):
    """A document: PDF, DOCX or text."""

    type: Literal["document"]
    source: DocumentSource
    title: NotRequired[str | None]


@with_config(_OPEN)
class ThinkingBlock(_Cacheable):
    """Thinking of the model; see `thinking_block_strategy`."""

    type: Literal["thinking"]
    thinking: str
    signature: NotRequired[str | None]


@with_config(_OPEN)
class RedactedThinkingBlock(_Cacheable):
    """Thinking that only its provider can read."""

    type: Literal["redacted_thinking"]
    data: str


@with_config(_OPEN)
class ToolUseBlock(_Cacheable):
    """The model's call of a tool."""

    type: Literal["tool_use"]
    id: _Text
    name: _Text
    input: dict[str, Any]


ResultBlock = Annotated[
    Annotated[TextBlock, Tag("#text")]
    | Annotated[ImageBlock, Tag("#image")]
    | Annotated[DocumentBlock, Tag("#document")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("text", "image", "document"),
]


@with_config(_OPEN)
class ToolResultBlock(_Cacheable):
    """The result of a tool call."""

    type: Literal["tool_result"]
    tool_use_id: Annotated[_Text, Field(description="The `id` of the tool call.")]
    content: NotRequired[
        Annotated[
            Annotated[str, Tag("#string")]
            | Annotated[
                list[ResultBlock], Field(fail_fast=True, max_length=MAX_BLOCKS), Tag("#blocks")
            ]
            | None,
            Field(union_mode="left_to_right"),
        ]
    ]
    is_error: NotRequired[bool | None]


ContentBlock = Annotated[
    Annotated[TextBlock, Tag("#text")]
    | Annotated[ImageBlock, Tag("#image")]
    | Annotated[DocumentBlock, Tag("#document")]
    | Annotated[ThinkingBlock, Tag("#thinking")]
    | Annotated[RedactedThinkingBlock, Tag("#redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("#tool_use")]
    | Annotated[ToolResultBlock, Tag("#tool_result")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type(
        "text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"
    ),
]


@with_config(_OPEN)
class Message(TypedDict):
    """One message; consecutive messages of one role are merged."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[
        Annotated[str, Tag("#string")]
        | Annotated[
            list[ContentBlock], Field(fail_fast=True, max_length=MAX_BLOCKS), Tag("#blocks")
        ],
        Field(union_mode="left_to_right"),
    ]


@with_config(_OPEN)
class CustomTool(_Cacheable):
    """A tool that the caller runs."""

    type: NotRequired[Literal["custom"] | None]
    name: Annotated[str, Field(min_length=1, max_length=MAX_TOOL_NAME)]
    description: NotRequired[str | None]
    input_schema: Annotated[dict[str, Any], Field(description="JSON Schema of the arguments.")]
    strict: NotRequired[bool | None]


@with_config(_OPEN)
class ServerTool(TypedDict):
    """A tool of an unknown type, such as one that the provider runs."""

    type: str
    name: NotRequired[Annotated[str, Field(min_length=1, max_length=MAX_TOOL_NAME)]]


def _tool_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    return "#server" if isinstance(kind, str) and kind != "custom" else "#custom"


Tool = Annotated[
    Annotated[CustomTool, Tag("#custom")] | Annotated[ServerTool, Tag("#server")],
    Discriminator(_tool_tag),
]


@with_config(_OPEN)
class ToolChoice(TypedDict):
    """Whether the model calls tools, and which one."""

    type: Annotated[
        str,
        Field(
            max_length=128,
            description="`auto`, `any`, `tool`, `none`, or another type that Anthropic supports.",
        ),
    ]
    name: NotRequired[
        Annotated[
            str,
            Field(max_length=128, description="Name of the tool; required if `type` is `tool`."),
        ]
    ]
    disable_parallel_tool_use: NotRequired[bool | None]


@with_config(_OPEN)
class ThinkingEnabled(TypedDict):
    """Thinking within a budget."""

    type: Literal["enabled"]
    budget_tokens: Annotated[
        int,
        Field(
            ge=MIN_THINKING_BUDGET,
            le=UINT32_MAX,
            description="Maximum tokens for thinking; must be below `max_tokens`, which "
            "includes them.",
        ),
    ]


@with_config(_OPEN)
class ThinkingPlain(TypedDict):
    """No thinking, or as much as the model decides."""

    type: Literal["disabled", "adaptive"]


def _thinking_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    if not isinstance(kind := value.get("type"), str):
        return UNTYPED
    return {"enabled": "#enabled", "disabled": "#plain", "adaptive": "#plain"}.get(kind, "#other")


Thinking = Annotated[
    Annotated[ThinkingEnabled, Tag("#enabled")]
    | Annotated[ThinkingPlain, Tag("#plain")]
    | Annotated[Other, Tag("#other")],
    Discriminator(_thinking_tag),
]


@with_config(_OPEN)
class JsonFormat(TypedDict):
    """An answer in JSON that matches a schema."""

    type: Literal["json_schema"]
    schema: Annotated[dict[str, Any], Field(description="JSON Schema of the answer.")]


@with_config(_OPEN)
class OutputConfig(TypedDict):
    """The effort and the format of the answer."""

    effort: NotRequired[
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=64,
                description="low, medium, high, xhigh or max. Other values are passed unchanged "
                "to providers of this dialect.",
            ),
        ]
        | None
    ]
    format: NotRequired[JsonFormat | None]


@with_config(_OPEN)
class Metadata(TypedDict):
    """Information about the request for the provider."""

    user_id: NotRequired[Annotated[str | None, Field(description="An opaque id of the end user.")]]


System = Annotated[
    Annotated[str, Tag("#string")]
    | Annotated[list[TextBlock], Field(fail_fast=True, max_length=MAX_BLOCKS), Tag("#blocks")],
    Field(union_mode="left_to_right"),
]
Messages = Annotated[
    list[Message], Field(fail_fast=True), Field(min_length=1, max_length=MAX_MESSAGES)
]
MaxTokens = Annotated[int, Field(ge=1, le=UINT32_MAX)]


class Parameters(BaseModel):
    """The fields of a request that a fallback step may override."""

    model_config = _OPEN

    messages: Messages | None = Field(None, description="The conversation so far.")
    system: System | None = Field(None, description="The system prompt.")
    max_tokens: MaxTokens | None = Field(
        None, description="Maximum number of tokens to generate, including thinking."
    )
    temperature: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Sampling temperature; the model's default if omitted."
    )
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="Nucleus sampling: samples only from the most likely tokens with "
        "this total probability.",
    )
    top_k: Annotated[int, Field(ge=1, le=UINT32_MAX)] | None = Field(
        None, description="Samples only from this many of the most likely tokens."
    )
    stop_sequences: (
        Annotated[list[_Text], Field(fail_fast=True, max_length=MAX_STOP_SEQUENCES)] | None
    ) = Field(None, description="Strings that end the answer when the model generates them.")
    tools: Annotated[list[Tool], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None, description="Tools the model may call; names must be unique."
    )
    tool_choice: (
        Annotated[
            Annotated[Literal["auto", "any", "none"], Tag("#name")]
            | Annotated[ToolChoice, Tag("#object")],
            Field(union_mode="left_to_right"),
        ]
        | None
    ) = Field(None, description="Whether the model may or must call tools, and which ones.")
    thinking: Thinking | None = Field(
        None, description="Whether and how much the model thinks before it answers."
    )
    output_config: OutputConfig | None = Field(None, description="Effort and format of the answer.")
    metadata: Metadata | None = Field(
        None, description="Information about the request for the provider."
    )
    service_tier: Annotated[str, Field(max_length=256)] | None = Field(
        None, description="The provider's service tier: `auto` or `standard_only`."
    )


class CountTokensBody(Parameters, ExtensionFields):
    """Body of POST …/messages/count_tokens."""

    model: Name = Field(description="Model name, as listed by `GET /beta/v1/models`.")
    messages: Messages = Field(
        description="The conversation so far. An assistant message at the end is "
        "continued by the model."
    )
    stream: bool | None = Field(
        None, description="Whether to stream the answer as server-sent events."
    )
    thinking_block_strategy: Literal["preserve", "discard", "flatten"] | None = Field(
        None,
        description="How thinking blocks in `messages` are handled. `preserve`: blocks "
        "with a valid signature are kept. `discard`: all are removed. "
        "`flatten`: all become text. Default: `preserve`.",
    )
    use_built_in_tools: bool | None = Field(
        None,
        description="Whether the model may use the gateway's own tools: `web_search`, if "
        "a search engine is configured, and `web_fetch`. The gateway runs "
        "them within the request, and the answer contains their calls and "
        "results as `server_tool_use`, `web_search_tool_result` and "
        "`web_fetch_tool_result`. A tool in `tools` with one of these names "
        "replaces the gateway's. Default: false; for coding agents, true if "
        "a search engine is configured.",
    )


class MessagesBody(CountTokensBody):
    """Body of POST …/messages."""

    max_tokens: MaxTokens = Field(
        description="Maximum number of tokens to generate, including thinking."
    )
