"""Wire types of a response's input: items and content parts.

Items are a union by `type`. Content parts are one type, as unknown types are accepted; the fields
that a type requires are checked by the translation. Unknown fields are accepted nearly everywhere
and passed on to providers of this dialect. Names of union members begin with `#` (see
`facade.dialects.validation`).
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.extensions import MAX_BLOCKS, MAX_MESSAGES
from facade.dialects.openai.types import InputAudio
from facade.dialects.validation import UNTYPED

# Types are built on first use: a process uses few of them.
OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

Text = Annotated[str, Field(min_length=1)]

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


@with_config(OPEN)
class ContentPart(TypedDict):
    """A part of a message or of a tool's output."""

    type: Annotated[
        Text,
        Field(
            description="input_text, input_image, input_file or input_audio; from the assistant "
            "output_text or refusal. Other types go on to providers of this dialect as they are."
        ),
    ]
    text: NotRequired[
        Annotated[str | None, Field(description="With `input_text` and `output_text`: the text.")]
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
        Annotated[InputAudio | None, Field(description="With `input_audio`: the recording.")]
    ]
    refusal: NotRequired[
        Annotated[str | None, Field(description="With `refusal`, from the assistant: its words.")]
    ]


Parts = Annotated[list[ContentPart], Tag("#parts"), Field(fail_fast=True, max_length=MAX_BLOCKS)]
Content = Annotated[str, Tag("#string")] | Parts


@with_config(OPEN)
class Message(TypedDict):
    """A message of the conversation."""

    type: NotRequired[Literal["message"] | None]
    role: Annotated[
        Literal["user", "assistant", "system", "developer"], Field(description="Who speaks.")
    ]
    content: Annotated[Content, Field(description="A string, or an array of parts.")]


@with_config(OPEN)
class FunctionCall(TypedDict):
    """The model's call of a function."""

    type: Literal["function_call"]
    call_id: Annotated[Text, Field(description="Id of the call, named by its output.")]
    name: Annotated[Text, Field(description="Name of the function.")]
    arguments: Annotated[str, Field(description="The arguments, JSON as the model wrote it.")]


@with_config(OPEN)
class CustomToolCall(TypedDict):
    """The model's call of a tool that takes free text."""

    type: Literal["custom_tool_call"]
    call_id: Annotated[Text, Field(description="Id of the call, named by its output.")]
    name: Annotated[Text, Field(description="Name of the tool.")]
    input: Annotated[str, Field(description="The text.")]


@with_config(OPEN)
class ToolOutput(TypedDict):
    """The output of a tool that the caller ran."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: Annotated[Text, Field(description="Id of the call that it answers.")]
    output: Annotated[Content, Field(description="A string, or an array of parts.")]


@with_config(OPEN)
class ReasoningText(TypedDict):
    """A text of a reasoning item."""

    type: Annotated[Text, Field(description="summary_text or reasoning_text.")]
    text: NotRequired[str]


@with_config(OPEN)
class Reasoning(TypedDict):
    """Thinking of the model, as an answer returned it."""

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


@with_config(OPEN)
class ItemReference(TypedDict):
    """An item of a stored response, by its id."""

    type: NotRequired[Literal["item_reference"] | None]
    id: Annotated[Text, Field(description="Id of the item.")]


@with_config(OPEN)
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
