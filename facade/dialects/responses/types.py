"""Wire types of `POST /v1/responses`, for validation and documentation.

Unknown fields are accepted nearly everywhere and passed on to providers of this dialect. Names of
union members begin with `#` (see `facade.dialects.validation`).

Source: OpenAI's API reference, "Create a model response".
"""

from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import ExtensionFields
from facade.dialects.field_types import MAX_TOOLS, UINT32_MAX, Name
from facade.dialects.responses.item_types import OPEN, Input, Text
from facade.dialects.responses.tool_types import NamedToolChoice, Object, Tool
from facade.dialects.validation import FewFields


@with_config(OPEN)
class Format(TypedDict):
    """The format of an answer."""

    type: Annotated[
        Text,
        Field(
            description="text, json_object or json_schema. Other types are passed unchanged "
            "to providers of this dialect."
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
            str | None,
            Field(description="With `json_schema`: description of the answer, for the model."),
        ]
    ]
    strict: NotRequired[
        Annotated[
            bool | None,
            Field(
                description="With `json_schema`: whether the answer must match the schema exactly."
            ),
        ]
    ]


@with_config(OPEN)
class TextConfig(TypedDict):
    """Options of the answer's text."""

    format: NotRequired[Annotated[Format | None, Field(description="Format of the answer.")]]
    verbosity: NotRequired[Annotated[str | None, Field(description="low, medium or high.")]]


@with_config(OPEN)
class ReasoningConfig(TypedDict):
    """Options of the model's thinking."""

    effort: NotRequired[
        Annotated[
            Annotated[Text, Field(max_length=64)] | None,
            Field(
                description="How much the model thinks before it answers: none, minimal, low, "
                "medium, high, xhigh or max. Other values are passed unchanged to "
                "providers of this dialect."
            ),
        ]
    ]
    summary: NotRequired[
        Annotated[str | None, Field(description="Type of the thinking summary to return.")]
    ]


@with_config(OPEN)
class Conversation(TypedDict):
    """A stored conversation, or a memory."""

    id: Annotated[Name, Field(description="Id of the conversation, or name of the memory.")]


@with_config(OPEN)
class StreamOptions(TypedDict):
    """Options of streaming, passed on to providers of this dialect."""


Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=64)],
        Annotated[str, Field(max_length=512)],
    ],
    Field(max_length=16),
    FewFields,
]


class ResponseParameters(BaseModel):
    """The parameters of a request, without the conversation and its routing."""

    model_config = OPEN

    instructions: str | None = Field(
        None, description="The system prompt; not carried over to responses that continue this one."
    )
    max_output_tokens: Annotated[int, Field(ge=1, le=UINT32_MAX)] | None = Field(
        None, description="Maximum number of tokens to generate, including thinking."
    )
    max_tool_calls: Annotated[int, Field(ge=1, le=UINT32_MAX)] | None = Field(
        None, description="Maximum number of web searches."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="Sampling temperature, from 0 (most deterministic) to 2 (most random)."
    )
    top_p: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="Nucleus sampling: samples only from the most likely tokens with "
        "this total probability.",
    )
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None,
        description="Number of alternatives to return for each token; `include` must "
        "contain `message.output_text.logprobs`.",
    )
    text: TextConfig | None = Field(None, description="Options of the answer's text.")
    reasoning: ReasoningConfig | None = Field(None, description="Options of the model's thinking.")
    tools: Annotated[list[Tool], Field(fail_fast=True, max_length=MAX_TOOLS)] | None = Field(
        None, description="Tools the model may call; names must be unique."
    )
    tool_choice: (
        Annotated[Literal["none", "auto", "required"], Tag("#mode")]
        | Annotated[NamedToolChoice, Tag("#named")]
        | None
    ) = Field(None, description="Whether the model may or must call tools, and which ones.")
    parallel_tool_calls: bool | None = Field(
        None, description="Whether the model may call several tools in one answer."
    )
    include: Annotated[list[Text], Field(fail_fast=True, max_length=64)] | None = Field(
        None,
        description="Additional data to return: `message.output_text.logprobs`, "
        "`web_search_call.action.sources`, `file_search_call.results`. "
        "`reasoning.encrypted_content` is always returned.",
    )
    truncation: Literal["auto", "disabled"] | None = Field(
        None, description="Whether the provider may drop the oldest items."
    )
    metadata: Metadata | None = Field(
        None, description="Up to 16 key-value pairs of strings, returned in the response."
    )
    user: str | None = Field(None, description="An id of the end user.")
    safety_identifier: str | None = Field(
        None, description="An id of the end user, for the provider's abuse detection."
    )
    prompt_cache_key: str | None = Field(
        None, description="Groups requests for the provider's prompt cache."
    )
    service_tier: str | None = Field(None, description="The provider's service tier.")
    prompt: Object | None = Field(
        None,
        description="A prompt stored at the provider; only for providers of this dialect that "
        "have `pass_stateful` in the settings.",
    )


class StepParameters(ResponseParameters):
    """The fields of a request that a fallback step may override."""

    input: Input | None = Field(None, description="Replaces the conversation.")


class ResponseRequest(ExtensionFields, ResponseParameters):
    """The body of `POST /v1/responses`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "gpt-4o-mini", "input": "Hello"},
                {
                    "model": "gpt-4o-mini",
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

    model: Name = Field(description="Model name, as listed by `GET /v1/models`.")
    input: Input | None = Field(
        None, description="A text of the user, or the items of the conversation so far."
    )
    stream: bool | None = Field(
        None, description="Whether to stream the answer as server-sent events."
    )
    stream_options: StreamOptions | None = Field(
        None, description="Allowed only if `stream` is true."
    )
    store: bool | None = Field(
        True,
        description="Whether to store the response, so that it can be retrieved or "
        "continued later.",
    )
    background: bool | None = Field(
        None, description="Whether to return at once and generate the response in the background."
    )
    previous_response_id: Text | None = Field(
        None, description="Id of the stored response that this one continues."
    )
    conversation: (
        Annotated[Name, Tag("#name")] | Annotated[Conversation, Tag("#conversation")] | None
    ) = Field(
        None,
        description="Id of a stored conversation: its items precede the input, and the "
        "items of the input and of the response are appended to it. Any "
        "other name is the name of a memory, as in `memory_id`. Cannot be "
        "given together with `previous_response_id`.",
    )
