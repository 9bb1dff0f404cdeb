"""Wire types of Anthropic's messages: bodies of POST …/messages and …/count_tokens.

They validate a body directly from its bytes and describe it in OpenAPI. Unknown fields are
accepted, as are blocks, sources and tools of unknown types; the translator keeps them for providers
of the same dialect. Null in an optional field is the same as omitting it. Lists have TypedDicts, as
100,000 messages as models take a third more memory.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.anthropic.block_types import (
    OPEN,
    Cacheable,
    Message,
    Other,
    Text,
    TextBlock,
)
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


@with_config(OPEN)
class CustomTool(Cacheable):
    """A tool that the caller runs."""

    type: NotRequired[Literal["custom"] | None]
    name: Annotated[str, Field(min_length=1, max_length=MAX_TOOL_NAME)]
    description: NotRequired[str | None]
    input_schema: Annotated[dict[str, Any], Field(description="JSON Schema of the arguments.")]
    strict: NotRequired[bool | None]


@with_config(OPEN)
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


@with_config(OPEN)
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


@with_config(OPEN)
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


@with_config(OPEN)
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


@with_config(OPEN)
class JsonFormat(TypedDict):
    """An answer in JSON that matches a schema."""

    type: Literal["json_schema"]
    schema: Annotated[dict[str, Any], Field(description="JSON Schema of the answer.")]


@with_config(OPEN)
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


@with_config(OPEN)
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
# 0 fills the cache, and generates nothing.
MaxTokens = Annotated[int, Field(ge=0, le=UINT32_MAX)]


class Parameters(BaseModel):
    """The fields of a request that a fallback step may override."""

    model_config = OPEN

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
        Annotated[list[Text], Field(fail_fast=True, max_length=MAX_STOP_SEQUENCES)] | None
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

    model: Name = Field(description="Model name, as listed by `GET /v1/models`.")
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
