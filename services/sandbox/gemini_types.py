"""Requests of Gemini's API: the fields that the models read; further ones are ignored.

Source: the reference of `generateContent`.
"""

from typing import Annotated

import msgspec

from services.sandbox.bodies import Alternatives, Choices, Object, Size
from services.sandbox.model.vectors import DIMENSIONS


class _Gemini(msgspec.Struct, rename="camel"):
    """The base of Gemini's types, whose names are in camel case."""


class _Blob(_Gemini):
    mime_type: str
    data: str


class _FileData(_Gemini):
    file_uri: str
    mime_type: str = ""


class _FunctionCall(_Gemini):
    name: str
    id: str = ""
    args: Object | None = None


class _FunctionResponse(_Gemini):
    name: str
    id: str = ""
    response: Object | None = None


class _GeminiPart(_Gemini):
    text: str | None = None
    thought: bool | None = None
    inline_data: _Blob | msgspec.UnsetType = msgspec.UNSET
    file_data: _FileData | msgspec.UnsetType = msgspec.UNSET
    function_call: _FunctionCall | None = None
    function_response: _FunctionResponse | None = None


class _Content(_Gemini):
    parts: list[_GeminiPart]
    role: str | None = None


class _Declaration(_Gemini):
    name: str
    description: str | None = None
    parameters: Object | None = None
    parameters_json_schema: Object | None = None


class _GeminiTool(_Gemini):
    function_declarations: list[_Declaration] | None = None


class _FunctionCallingConfig(_Gemini):
    mode: str | None = None
    allowed_function_names: list[str] | None = None


class _ToolConfig(_Gemini):
    function_calling_config: _FunctionCallingConfig | None = None


class _ThinkingConfig(_Gemini):
    include_thoughts: bool | None = None
    thinking_budget: int | None = None


class _GenerationConfig(_Gemini):
    stop_sequences: list[str] | None = None
    response_mime_type: str | None = None
    response_schema: Object | None = None
    response_json_schema: Object | None = None
    thinking_config: _ThinkingConfig | None = None
    candidate_count: Choices | None = None
    max_output_tokens: Size | None = None
    response_logprobs: bool | None = None
    logprobs: Alternatives | None = None


class GenerateContentRequest(_Gemini):
    """A request of Gemini's `generateContent` and `streamGenerateContent`."""

    contents: Annotated[list[_Content], msgspec.Meta(min_length=1)]
    system_instruction: _Content | None = None
    tools: list[_GeminiTool] | None = None
    tool_config: _ToolConfig | None = None
    generation_config: _GenerationConfig | None = None


class CountTokensRequest(_Gemini):
    """A request of Gemini's `countTokens`: one of the two fields."""

    contents: list[_Content] | None = None
    generate_content_request: GenerateContentRequest | None = None


class _EmbedContentRequest(_Gemini):
    content: _Content
    output_dimensionality: Annotated[int, msgspec.Meta(ge=1, le=DIMENSIONS)] | None = None


class BatchEmbedContentsRequest(_Gemini):
    """A request of Gemini's `batchEmbedContents`."""

    requests: Annotated[list[_EmbedContentRequest], msgspec.Meta(min_length=1)]
