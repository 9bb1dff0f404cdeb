"""Wire types of `POST /beta/v1/chat/completions`, for validation and documentation.

Messages are TypedDicts, as 100,000 of them take a third less memory than models. Content parts,
tools and tool calls are one type each, not a union by `type`, as unknown types are accepted; the
fields that a type requires are checked by the translation. Unknown fields are accepted nearly
everywhere and passed on to providers of this dialect. Names of union members begin with `#` (see
`facade.dialects.validation`).

Source: the service interface, chat completions; for the fields that it presupposes, OpenAI's API
reference.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import (
    MAX_BLOCKS,
    MAX_MESSAGES,
    MAX_TOOL_CALLS,
    MAX_TOOLS,
    UINT32_MAX,
    ExtensionFields,
    Name,
)
from facade.dialects.validation import FewFields

# Types are built on first use: a process uses few of them.
_OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

Text = Annotated[str, Field(min_length=1)]
Object = dict[str, Any]
TokenCount = Annotated[int, Field(ge=1, le=UINT32_MAX)]
Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


@with_config(_OPEN)
class ImageUrl(TypedDict):
    """The location of an image."""

    url: Annotated[
        Text,
        Field(description="An http(s) address, a base64 data URL, or the id of an uploaded file."),
    ]
    detail: NotRequired[
        Annotated[
            Literal["auto", "low", "high", "original"] | None,
            Field(description="How closely the model looks."),
        ]
    ]


@with_config(_OPEN)
class InputAudio(TypedDict):
    """A recording."""

    data: Annotated[Text, Field(description="The recording in base64.")]
    format: Annotated[
        Literal["wav", "mp3", "flac", "ogg", "opus", "aac", "m4a", "webm"],
        Field(description="What the recording is encoded in."),
    ]


@with_config(_OPEN)
class File(TypedDict):
    """A file: `file_id`, or else `file_data`."""

    file_id: NotRequired[Annotated[Text | None, Field(description="Id of an uploaded file.")]]
    file_data: NotRequired[
        Annotated[Text | None, Field(description="The content in base64, or a base64 data URL.")]
    ]
    filename: NotRequired[Annotated[str | None, Field(description="Name of the file.")]]


@with_config(_OPEN)
class ContentPart(TypedDict):
    """A part of a message; each `type` has a field of the same name.

    Clients that write all known fields have null in those of other types.
    """

    type: Annotated[
        Text,
        Field(
            description="text, image_url, input_audio, file or refusal. "
            "Other types go on to providers of this dialect as they are."
        ),
    ]
    text: NotRequired[Annotated[str | None, Field(description="With `text`: the text.")]]
    image_url: NotRequired[
        Annotated[ImageUrl | None, Field(description="With `image_url`: the image.")]
    ]
    input_audio: NotRequired[
        Annotated[InputAudio | None, Field(description="With `input_audio`: the recording.")]
    ]
    file: NotRequired[Annotated[File | None, Field(description="With `file`: the file.")]]
    refusal: NotRequired[
        Annotated[str | None, Field(description="With `refusal`, from the assistant: its words.")]
    ]


@with_config(_OPEN)
class FunctionCall(TypedDict):
    """A call of a function."""

    name: Annotated[Text, Field(description="Name of the function.")]
    arguments: Annotated[str, Field(description="The arguments, JSON as the model wrote it.")]


@with_config(_OPEN)
class CustomCall(TypedDict):
    """A call of a tool that takes free text."""

    name: Annotated[Text, Field(description="Name of the tool.")]
    input: Annotated[str, Field(description="The text.")]


@with_config(_OPEN)
class ToolCall(TypedDict):
    """A tool call of the assistant."""

    id: Annotated[Text, Field(description="Id of the call, named by the tool message.")]
    type: Annotated[Literal["function", "custom"], Field(description="Which kind of tool.")]
    function: NotRequired[
        Annotated[FunctionCall | None, Field(description="With `function`: the call.")]
    ]
    custom: NotRequired[Annotated[CustomCall | None, Field(description="With `custom`: the call.")]]


Parts = Annotated[list[ContentPart], Tag("#parts"), Field(fail_fast=True, max_length=MAX_BLOCKS)]
Content = Annotated[str, Tag("#string")] | Parts | None


@with_config(_OPEN)
class Message(TypedDict):
    """One message of the conversation."""

    role: Annotated[Role, Field(description="Who speaks.")]
    content: NotRequired[
        Annotated[
            Content,
            Field(
                description="A string, or an array of parts. From the assistant null, or "
                "absent, where it calls tools or refuses."
            ),
        ]
    ]
    name: NotRequired[Annotated[str | None, Field(description="The participant's name.")]]
    tool_call_id: NotRequired[
        Annotated[Text | None, Field(description="With `tool`, required: the call it answers.")]
    ]
    tool_calls: NotRequired[
        Annotated[
            Annotated[list[ToolCall], Field(fail_fast=True, max_length=MAX_TOOL_CALLS)] | None,
            Field(description="From the assistant: its tool calls."),
        ]
    ]
    function_call: NotRequired[
        Annotated[
            FunctionCall | None,
            Field(description="From the assistant, deprecated: its call of one of `functions`."),
        ]
    ]
    refusal: NotRequired[
        Annotated[str | None, Field(description="From the assistant: its refusal.")]
    ]
    reasoning_content: NotRequired[
        Annotated[str | None, Field(description="From the assistant: what it thought.")]
    ]


@with_config(_OPEN)
class FunctionDefinition(TypedDict):
    """A function that the model may call."""

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
class CustomDefinition(TypedDict):
    """A tool that takes free text."""

    name: Annotated[Text, Field(description="1 to 128 letters, digits, `_` and `-`.")]


@with_config(_OPEN)
class Tool(TypedDict):
    """A tool that the model may call; other types are passed on to providers of this dialect."""

    type: Annotated[Text, Field(description="function or custom.")]
    function: NotRequired[
        Annotated[FunctionDefinition, Field(description="With `function`: its definition.")]
    ]
    custom: NotRequired[
        Annotated[CustomDefinition, Field(description="With `custom`: its definition.")]
    ]


@with_config(_OPEN)
class ToolName(TypedDict):
    """Names a tool."""

    name: Annotated[Text, Field(description="Name of one of the request's tools.")]


@with_config(_OPEN)
class AllowedTools(TypedDict):
    """Some of the request's tools."""

    mode: Annotated[Literal["auto", "required"], Field(description="Whether one must be called.")]
    tools: Annotated[
        list[Object],
        Field(
            fail_fast=True,
            max_length=MAX_TOOLS,
            description="The tools, each by its type and name.",
        ),
    ]


@with_config(_OPEN)
class NamedToolChoice(TypedDict):
    """The choice of a certain tool, or of some tools."""

    type: Annotated[
        Text,
        Field(
            description="function, custom or allowed_tools. "
            "Other types go on to providers of this dialect as they are."
        ),
    ]
    function: NotRequired[Annotated[ToolName, Field(description="With `function`: which.")]]
    custom: NotRequired[Annotated[ToolName, Field(description="With `custom`: which.")]]
    allowed_tools: NotRequired[
        Annotated[AllowedTools, Field(description="With `allowed_tools`: which.")]
    ]


@with_config(_OPEN)
class JsonSchema(TypedDict):
    """The schema that an answer must match."""

    name: Annotated[
        str, Field(min_length=1, max_length=64, description="Name of the schema, for the model.")
    ]
    schema: Annotated[Object, Field(description="JSON Schema of the answer.")]
    description: NotRequired[
        Annotated[str | None, Field(description="What the answer is, for the model.")]
    ]
    strict: NotRequired[
        Annotated[bool | None, Field(description="Whether the answer must match exactly.")]
    ]


@with_config(_OPEN)
class ResponseFormat(TypedDict):
    """The format of an answer."""

    type: Annotated[
        Text,
        Field(
            description="text, json_object or json_schema. "
            "Other types go on to providers of this dialect as they are."
        ),
    ]
    json_schema: NotRequired[
        Annotated[JsonSchema, Field(description="With `json_schema`: the schema.")]
    ]


@with_config(_OPEN)
class StreamOptions(TypedDict):
    """Options of streaming; unknown options are passed on to providers of this dialect."""

    include_usage: NotRequired[
        Annotated[
            bool | None, Field(description="Whether a last chunk without choices tells the usage.")
        ]
    ]


StopStrings = Annotated[list[Text], Tag("#list"), Field(fail_fast=True, max_length=64)]

# An integer bias is passed on as an integer.
Bias = Annotated[
    Annotated[int, Tag("#integer")] | Annotated[float, Tag("#number")], Field(ge=-100, le=100)
]


Messages = Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]


class ChatParameters(BaseModel):
    """The parameters of a request, without the conversation and its routing."""

    model_config = _OPEN

    max_tokens: TokenCount | None = Field(
        None, description="Upper bound on the tokens written, thinking included."
    )
    max_completion_tokens: TokenCount | None = Field(
        None, description="The newer name of `max_tokens`; both must agree where both are given."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="0 is steady, 2 is wild."
    )
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="The share of probability that tokens are drawn from."
    )
    n: Annotated[int, Field(ge=1, le=128)] | None = Field(
        None, description="How many answers to generate."
    )
    stop: Annotated[Text, Tag("#string")] | StopStrings | None = Field(
        None, description="A string, or up to 64 of them, that end the answer."
    )
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = Field(
        None, description="The same seed gives the same answer, as far as the provider can."
    )
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = Field(
        None, description="Above 0: favours new topics."
    )
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = Field(
        None, description="Above 0: repeats less."
    )
    logit_bias: Annotated[dict[str, Bias], FewFields] | None = Field(
        None, description="Token id to what is added to its logit."
    )
    web_search_options: Annotated[dict[str, Any], FewFields] | None = Field(
        None,
        description="That the model may search the web, `{}` for the usual way: "
        "`search_context_size` (low, medium, high), `user_location`, `filters`. Models that "
        "search by themselves get it as it is; for any other the gateway searches, where a "
        "search engine is configured, and the pages that the answer names are `annotations`.",
    )
    logprobs: bool | None = Field(
        None, description="Whether to return log probabilities of the tokens written."
    )
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None, description="How many alternatives to return for each token; needs `logprobs`."
    )
    response_format: ResponseFormat | None = Field(None, description="The form of the answer.")
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
    reasoning_effort: Annotated[Text, Field(max_length=64)] | None = Field(
        None,
        description="How much the model thinks before it answers: none, minimal, low, medium, "
        "high, xhigh or max. Other names go on to providers of this dialect as they are.",
    )
    user: str | None = Field(None, description="An id of the end user.")
    service_tier: str | None = Field(None, description="The provider's service tier.")


class StepParameters(ChatParameters):
    """The fields of a request that a fallback step may override."""

    messages: Messages | None = Field(None, description="Another conversation.")


class ChatRequest(ExtensionFields, ChatParameters):
    """The body of `POST /beta/v1/chat/completions`."""

    model: Name = Field(description="A model of `GET /beta/v1/models`.")
    messages: Messages = Field(description="The conversation so far.")
    stream: bool | None = Field(None, description="Whether the answer comes as Server-Sent Events.")
    stream_options: StreamOptions | None = Field(None, description="Only with `stream`.")
    functions: (
        Annotated[list[FunctionDefinition], Field(fail_fast=True, max_length=MAX_TOOLS)] | None
    ) = Field(
        None,
        description="Deprecated, in place of `tools`: functions the model may call, one at a time. "
        "The answer has its call in `function_call`, with the finish reason of that name.",
    )
    function_call: (
        Annotated[Literal["none", "auto"], Tag("#mode")] | Annotated[ToolName, Tag("#named")] | None
    ) = Field(None, description="Deprecated, with `functions`: whether and which is to be called.")
