"""The wire types of `POST /beta/v1/responses`: they check requests and document them.

Items and tools are unions by their `type`. Content parts are one type, since kinds that are not
known here must pass; what a kind needs is checked where it is read. Unknown fields are allowed
nearly everywhere and travel on to providers of this dialect. Names of union members begin with `#`
(see `facade.dialects.validation`).

Source: OpenAI's API reference, "Create a model response".
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import (
    MAX_BLOCKS,
    MAX_MESSAGES,
    MAX_TOOLS,
    UINT32_MAX,
    ExtensionFields,
    Name,
)
from facade.dialects.openai.types import InputAudio
from facade.dialects.validation import UNTYPED, FewFields

# A type is built when it is first used: few of them are in the life of a process.
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

Text = Annotated[str, Field(min_length=1)]
Object = dict[str, Any]

_MESSAGE = "#message"
_ITEMS = {
    name: f"#{name}"
    for name in (
        *("message", "function_call", "function_call_output", "custom_tool_call"),
        *("custom_tool_call_output", "reasoning", "item_reference"),
    )
}


def _item_tag(value: Any) -> str | None:
    """Return the union member of an item; one without a `type` is a message or a reference."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind is None:
        return _MESSAGE if "role" in value or "id" not in value else "#item_reference"
    return _ITEMS.get(kind, "#other") if isinstance(kind, str) else UNTYPED


@with_config(_OPEN)
class ContentPart(TypedDict):
    """A piece of a message or of a tool's output."""

    type: Annotated[
        Text,
        Field(
            description="input_text, input_image, input_file or input_audio; from the assistant "
            "output_text or refusal. Other types go on to providers of this dialect as they are."
        ),
    ]
    text: NotRequired[
        Annotated[str, Field(description="With `input_text` and `output_text`: the text.")]
    ]
    image_url: NotRequired[
        Annotated[
            Text | None,
            Field(description="With `input_image`: an http(s) address or a base64 data URL."),
        ]
    ]
    detail: NotRequired[
        Annotated[str | None, Field(description="With `input_image`: auto, low, high or original.")]
    ]
    file_id: NotRequired[
        Annotated[
            Text | None,
            Field(description="With `input_image` and `input_file`: id of an uploaded file."),
        ]
    ]
    file_data: NotRequired[
        Annotated[
            Text | None,
            Field(description="With `input_file`: the content in base64, or a base64 data URL."),
        ]
    ]
    file_url: NotRequired[
        Annotated[Text | None, Field(description="With `input_file`: an http(s) address.")]
    ]
    filename: NotRequired[
        Annotated[str | None, Field(description="With `input_file`: name of the file.")]
    ]
    input_audio: NotRequired[
        Annotated[InputAudio, Field(description="With `input_audio`: the recording.")]
    ]
    refusal: NotRequired[
        Annotated[str, Field(description="With `refusal`, from the assistant: its words.")]
    ]


Parts = Annotated[list[ContentPart], Tag("#parts"), Field(fail_fast=True, max_length=MAX_BLOCKS)]
Content = Annotated[str, Tag("#string")] | Parts


@with_config(_OPEN)
class Message(TypedDict):
    """A message of the conversation."""

    type: NotRequired[Literal["message"] | None]
    role: Annotated[
        Literal["user", "assistant", "system", "developer"], Field(description="Who speaks.")
    ]
    content: Annotated[Content, Field(description="A string, or an array of parts.")]


@with_config(_OPEN)
class FunctionCall(TypedDict):
    """The model's call of a function."""

    type: Literal["function_call"]
    call_id: Annotated[Text, Field(description="Id of the call, named by its output.")]
    name: Annotated[Text, Field(description="Name of the function.")]
    arguments: Annotated[str, Field(description="The arguments, JSON as the model wrote it.")]


@with_config(_OPEN)
class CustomToolCall(TypedDict):
    """The model's call of a tool that takes free text."""

    type: Literal["custom_tool_call"]
    call_id: Annotated[Text, Field(description="Id of the call, named by its output.")]
    name: Annotated[Text, Field(description="Name of the tool.")]
    input: Annotated[str, Field(description="The text.")]


@with_config(_OPEN)
class ToolOutput(TypedDict):
    """What a tool of the caller's returned."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: Annotated[Text, Field(description="Id of the call that it answers.")]
    output: Annotated[Content, Field(description="A string, or an array of parts.")]


@with_config(_OPEN)
class ReasoningText(TypedDict):
    """A text of a reasoning item."""

    type: Annotated[Text, Field(description="summary_text or reasoning_text.")]
    text: NotRequired[str]


@with_config(_OPEN)
class Reasoning(TypedDict):
    """What the model thought, as an answer gave it."""

    type: Literal["reasoning"]
    summary: NotRequired[
        Annotated[list[ReasoningText] | None, Field(description="The thoughts, or a summary.")]
    ]
    content: NotRequired[
        Annotated[list[ReasoningText] | None, Field(description="The thoughts themselves.")]
    ]
    encrypted_content: NotRequired[
        Annotated[
            str | None,
            Field(
                description="As the answer gave it. Without it, or with texts that were changed, "
                "the thoughts are left out for most providers."
            ),
        ]
    ]


@with_config(_OPEN)
class ItemReference(TypedDict):
    """An item of a stored response, by its id."""

    type: NotRequired[Literal["item_reference"] | None]
    id: Annotated[Text, Field(description="Id of the item.")]


@with_config(_OPEN)
class Other(TypedDict):
    """An object of another type; passed on to providers of this dialect."""

    type: Text


Item = Annotated[
    Annotated[Message, Tag(_MESSAGE)]
    | Annotated[FunctionCall, Tag("#function_call")]
    | Annotated[ToolOutput, Tag("#function_call_output")]
    | Annotated[CustomToolCall, Tag("#custom_tool_call")]
    | Annotated[ToolOutput, Tag("#custom_tool_call_output")]
    | Annotated[Reasoning, Tag("#reasoning")]
    | Annotated[ItemReference, Tag("#item_reference")]
    | Annotated[Other, Tag("#other")],
    Discriminator(_item_tag),
]
Items = Annotated[list[Item], Field(max_length=MAX_MESSAGES, fail_fast=True)]
Input = Annotated[str, Tag("#string")] | Annotated[Items, Tag("#items")]


@with_config(_OPEN)
class Function(TypedDict):
    """A function that the model may call."""

    type: Literal["function"]
    name: Annotated[Text, Field(description="1 to 128 letters, digits, `_` and `-`.")]
    description: NotRequired[
        Annotated[str | None, Field(description="What it does, for the model.")]
    ]
    parameters: NotRequired[
        Annotated[Object | None, Field(description="JSON Schema of the arguments.")]
    ]
    strict: NotRequired[
        Annotated[bool | None, Field(description="Whether the arguments must match exactly.")]
    ]


@with_config(_OPEN)
class CustomTool(TypedDict):
    """A tool that takes free text."""

    type: Literal["custom"]
    name: Annotated[Text, Field(description="1 to 128 letters, digits, `_` and `-`.")]


@with_config(_OPEN)
class WebSearch(TypedDict):
    """A search of the web; the gateway searches for models that cannot do it themselves."""

    type: Literal[
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    ]
    search_context_size: NotRequired[
        Annotated[str | None, Field(description="low, medium or high.")]
    ]
    user_location: NotRequired[
        Annotated[Object | None, Field(description="city, region, country and timezone.")]
    ]
    filters: NotRequired[
        Annotated[Object | None, Field(description="`allowed_domains`: a list of hosts.")]
    ]


_TOOLS = {
    "function": "#function",
    "custom": "#custom",
    **dict.fromkeys(
        (
            *("web_search", "web_search_2025_08_26"),
            *("web_search_preview", "web_search_preview_2025_03_11"),
        ),
        "#web_search",
    ),
}


def _tool_tag(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    return _TOOLS.get(kind, "#other") if isinstance(kind, str) else UNTYPED


Tool = Annotated[
    Annotated[Function, Tag("#function")]
    | Annotated[CustomTool, Tag("#custom")]
    | Annotated[WebSearch, Tag("#web_search")]
    | Annotated[Other, Tag("#other")],
    Discriminator(_tool_tag),
]


@with_config(_OPEN)
class NamedToolChoice(TypedDict):
    """A certain tool, or some of them."""

    type: Annotated[
        Text,
        Field(
            description="function, custom, web_search or allowed_tools. "
            "Other types go on to providers of this dialect as they are."
        ),
    ]
    name: NotRequired[Annotated[Text, Field(description="With `function` and `custom`: which.")]]
    mode: NotRequired[
        Annotated[
            Literal["auto", "required"],
            Field(description="With `allowed_tools`: whether one must be called."),
        ]
    ]
    tools: NotRequired[
        Annotated[
            list[Object],
            Field(
                fail_fast=True,
                max_length=MAX_TOOLS,
                description="With `allowed_tools`: the tools, each by its type and name.",
            ),
        ]
    ]


@with_config(_OPEN)
class Format(TypedDict):
    """The form of an answer."""

    type: Annotated[
        Text,
        Field(
            description="text, json_object or json_schema. "
            "Other types go on to providers of this dialect as they are."
        ),
    ]
    name: NotRequired[
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=64,
                description="With `json_schema`: name of the schema, for the model.",
            ),
        ]
    ]
    schema: NotRequired[
        Annotated[Object, Field(description="With `json_schema`: JSON Schema of the answer.")]
    ]
    description: NotRequired[
        Annotated[
            str | None, Field(description="With `json_schema`: what the answer is, for the model.")
        ]
    ]
    strict: NotRequired[
        Annotated[
            bool | None,
            Field(description="With `json_schema`: whether the answer must match exactly."),
        ]
    ]


@with_config(_OPEN)
class TextConfig(TypedDict):
    """How the answer is written."""

    format: NotRequired[Annotated[Format | None, Field(description="The form of the answer.")]]
    verbosity: NotRequired[Annotated[str | None, Field(description="low, medium or high.")]]


@with_config(_OPEN)
class ReasoningConfig(TypedDict):
    """How the model thinks."""

    effort: NotRequired[
        Annotated[
            Annotated[Text, Field(max_length=64)] | None,
            Field(
                description="How much the model thinks before it answers: none, minimal, low, "
                "medium, high, xhigh or max. Other names go on to providers of this dialect."
            ),
        ]
    ]
    summary: NotRequired[
        Annotated[str | None, Field(description="Which summary of its thoughts is wanted.")]
    ]


@with_config(_OPEN)
class Conversation(TypedDict):
    """A conversation that the server remembers."""

    id: Annotated[Name, Field(description="The caller's name for it.")]


@with_config(_OPEN)
class StreamOptions(TypedDict):
    """How the answer is streamed; options go on to providers of this dialect."""


Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=64)],
        Annotated[str, Field(max_length=512)],
    ],
    Field(max_length=16),
    FewFields,
]


class ResponseParameters(BaseModel):
    """How to answer: everything but the conversation and its routing."""

    model_config = _OPEN

    instructions: str | None = Field(
        None, description="The system prompt; not kept for a next response."
    )
    max_output_tokens: Annotated[int, Field(ge=1, le=UINT32_MAX)] | None = Field(
        None, description="Upper bound on the tokens written, thinking included."
    )
    max_tool_calls: Annotated[int, Field(ge=1, le=UINT32_MAX)] | None = Field(
        None, description="Upper bound on the searches of the web."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="0 is steady, 2 is wild."
    )
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="The share of probability that tokens are drawn from."
    )
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None,
        description="How many alternatives to return for each token; "
        "`include` has to name `message.output_text.logprobs`.",
    )
    text: TextConfig | None = Field(None, description="How the answer is written.")
    reasoning: ReasoningConfig | None = Field(None, description="How the model thinks.")
    tools: Annotated[list[Tool], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None, description="Tools the model may call; names are unique."
    )
    tool_choice: (
        Annotated[Literal["none", "auto", "required"], Tag("#mode")]
        | Annotated[NamedToolChoice, Tag("#named")]
        | None
    ) = Field(None, description="Whether and which tools are to be called.")
    parallel_tool_calls: bool | None = Field(
        None, description="Whether several tools may be called in one answer."
    )
    include: Annotated[list[Text], Field(fail_fast=True, max_length=64)] | None = Field(
        None,
        description="What else the answer holds: `message.output_text.logprobs`, "
        "`web_search_call.action.sources`. `reasoning.encrypted_content` is always there.",
    )
    truncation: Literal["auto", "disabled"] | None = Field(
        None, description="Whether the provider may leave out the oldest items."
    )
    metadata: Metadata | None = Field(None, description="Up to 16 texts that the answer repeats.")
    user: str | None = Field(None, description="An id of the end user.")
    safety_identifier: str | None = Field(
        None, description="An id of the end user, for the provider's abuse detection."
    )
    prompt_cache_key: str | None = Field(
        None, description="Groups requests for the provider's prompt cache."
    )
    service_tier: str | None = Field(None, description="The provider's service tier.")
    prompt: Object | None = Field(
        None, description="A prompt kept at the provider; for providers of this dialect alone."
    )


class StepParameters(ResponseParameters):
    """What a fallback step may set otherwise than the request."""

    input: Input | None = Field(None, description="Another conversation.")


class ResponseRequest(ExtensionFields, ResponseParameters):
    """The body of `POST /beta/v1/responses`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "sandbox/echo", "input": "Hello"},
                {
                    "model": "sandbox/echo",
                    "instructions": "Answer in one sentence.",
                    "input": [
                        {
                            "role": "user",
                            "content": [{"type": "input_text", "text": "How is the weather?"}],
                        }
                    ],
                    "tools": [
                        {
                            "type": "function",
                            "name": "get_weather",
                            "parameters": {
                                "type": "object",
                                "properties": {"city": {"type": "string"}},
                            },
                        }
                    ],
                    "store": False,
                },
            ]
        }
    )

    model: Name = Field(description="A model of `GET /beta/v1/models`.")
    input: Input | None = Field(
        None, description="The user's words, or the items of the conversation so far."
    )
    stream: bool | None = Field(None, description="Whether the answer comes as Server-Sent Events.")
    stream_options: StreamOptions | None = Field(None, description="Only with `stream`.")
    store: bool | None = Field(
        True, description="Whether the response is kept, to be read or continued later."
    )
    background: bool | None = Field(
        None, description="Whether to answer at once, and generate the response afterwards."
    )
    previous_response_id: Text | None = Field(
        None, description="The stored response that this one continues."
    )
    conversation: (
        Annotated[Name, Tag("#name")] | Annotated[Conversation, Tag("#conversation")] | None
    ) = Field(
        None,
        description="A conversation that the server remembers; the same as `memory_id`. "
        "Not with `previous_response_id`.",
    )
