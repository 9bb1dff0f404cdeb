"""Wire types of `POST /beta/v1/responses`, for validation and documentation.

Unknown fields are accepted nearly everywhere and passed on to providers of this dialect. Names of
union members begin with `#` (see `facade.dialects.validation`).

Source: OpenAI's API reference, "Create a model response".
"""

from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import MAX_TOOLS, UINT32_MAX, ExtensionFields, Name
from facade.dialects.responses.item_types import OPEN, Input, Text
from facade.dialects.responses.tool_types import NamedToolChoice, Object, Tool
from facade.dialects.validation import FewFields


@with_config(OPEN)
class Format(TypedDict):
    """The format of an answer."""

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


@with_config(OPEN)
class TextConfig(TypedDict):
    """Options of the answer's text."""

    format: NotRequired[Annotated[Format | None, Field(description="The form of the answer.")]]
    verbosity: NotRequired[Annotated[str | None, Field(description="low, medium or high.")]]


@with_config(OPEN)
class ReasoningConfig(TypedDict):
    """Options of the model's thinking."""

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
    """The fields of a request that a fallback step may override."""

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
        description="Id of a stored conversation, whose items go before the input, and which "
        "those of the input and of the response are appended to. Any other name is that of a "
        "memory, as `memory_id`. Not with `previous_response_id`.",
    )
