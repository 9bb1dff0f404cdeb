"""Requests of OpenAI's dialect: the fields that the models read; further ones are ignored.

Source: the references of chat completions, embeddings and responses.
"""

from typing import Annotated, Literal

import msgspec

from services.sandbox.bodies import Alternatives, Choices, Object, Size
from services.sandbox.model.vectors import DIMENSIONS


class _Named(msgspec.Struct):
    name: str
    description: str | None = None


class _Function(_Named):
    parameters: Object | None = None


class _ImageUrl(msgspec.Struct):
    url: str


class _InputAudio(msgspec.Struct):
    data: str
    format: str


class _File(msgspec.Struct):
    file_data: str = ""
    file_id: str = ""
    filename: str = ""


class _ChatPart(msgspec.Struct):
    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str = ""
    image_url: _ImageUrl | msgspec.UnsetType = msgspec.UNSET
    input_audio: _InputAudio | msgspec.UnsetType = msgspec.UNSET
    file: _File | msgspec.UnsetType = msgspec.UNSET


class _CalledFunction(msgspec.Struct):
    name: str
    arguments: str


class _CalledCustomTool(msgspec.Struct):
    name: str
    input: str


class _ChatCall(msgspec.Struct):
    id: str
    type: Literal["function", "custom"]
    function: _CalledFunction | msgspec.UnsetType = msgspec.UNSET
    custom: _CalledCustomTool | msgspec.UnsetType = msgspec.UNSET


class _ChatMessage(msgspec.Struct):
    role: str
    content: str | list[_ChatPart] | None = None
    tool_calls: list[_ChatCall] | None = None
    tool_call_id: str = ""


class _ChatTool(msgspec.Struct):
    type: Literal["function", "custom"]
    function: _Function | msgspec.UnsetType = msgspec.UNSET
    custom: _Named | msgspec.UnsetType = msgspec.UNSET


class _JsonSchema(msgspec.Struct):
    schema: Object | None = None


class _ResponseFormat(msgspec.Struct):
    type: str
    json_schema: _JsonSchema | msgspec.UnsetType = msgspec.UNSET


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(msgspec.Struct):
    """A request of OpenAI's chat completions."""

    model: str
    messages: Annotated[list[_ChatMessage], msgspec.Meta(min_length=1)]
    tools: list[_ChatTool] | None = None
    tool_choice: str | Object | None = None
    parallel_tool_calls: bool | None = None
    stop: str | list[str] | None = None
    response_format: _ResponseFormat | None = None
    max_tokens: Size | None = None
    max_completion_tokens: Size | None = None
    reasoning_effort: str | None = None
    logprobs: bool | None = None
    top_logprobs: Alternatives | None = None
    n: Choices | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


class EmbeddingsRequest(msgspec.Struct):
    """A request of OpenAI's embeddings."""

    model: str
    # Texts or their tokens.
    input: str | Annotated[list[str | int | list[int]], msgspec.Meta(min_length=1, max_length=8192)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=DIMENSIONS)] | None = None


class _ResponsePart(msgspec.Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""
    image_url: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str = ""


class _ResponseItem(msgspec.Struct):
    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[_ResponsePart] | None = None
    call_id: str | None = None
    name: str | None = None
    # Of a search for tools they may be an object.
    arguments: str | Object = ""
    input: str = ""
    # Of results of tools; other items may have an object.
    output: str | list[_ResponsePart] | Object | None = None
    encrypted_content: str | None = None


class _ResponseTool(msgspec.Struct):
    type: str
    name: str = ""
    description: str | None = None
    parameters: Object | None = None


class _TextFormat(msgspec.Struct):
    type: str
    schema: Object | None = None


class _TextOptions(msgspec.Struct):
    format: _TextFormat | None = None


class _Reasoning(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None


class ResponsesRequest(msgspec.Struct):
    """A request of OpenAI's responses."""

    model: str
    input: str | Annotated[list[_ResponseItem], msgspec.Meta(min_length=1)]
    instructions: str | None = None
    tools: list[_ResponseTool] | None = None
    tool_choice: str | Object | None = None
    parallel_tool_calls: bool | None = None
    text: _TextOptions | None = None
    max_output_tokens: Size | None = None
    reasoning: _Reasoning | None = None
    include: list[str] | None = None
    top_logprobs: Alternatives | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
