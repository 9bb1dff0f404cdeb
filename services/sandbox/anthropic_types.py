"""Requests of Anthropic's dialect: the fields that the models read; further ones are ignored.

Source: the reference of the messages API.
"""

from typing import Annotated, Any, Literal

import msgspec

from services.sandbox.bodies import Object, Size


class _Source(msgspec.Struct):
    type: str
    media_type: str = ""
    data: str = ""
    content: "str | list[_AnthropicBlock]" = ""
    url: str | None = None
    file_id: str | None = None


class _AnthropicBlock(msgspec.Struct):
    type: str
    text: str = ""
    title: str | None = None
    # Of images and documents; search results have a string.
    source: _Source | str | msgspec.UnsetType = msgspec.UNSET
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    tool_use_id: str = ""
    # Of results of tools; other blocks may have an object.
    content: "str | list[_AnthropicBlock] | Object | None" = None
    is_error: bool | None = None


class _AnthropicMessage(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[_AnthropicBlock]


class _AnthropicTool(msgspec.Struct):
    # Toolsets have none.
    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: Object | msgspec.UnsetType = msgspec.UNSET


class _AnthropicToolChoice(msgspec.Struct):
    type: Literal["auto", "any", "none", "tool"]
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class _AnthropicFormat(msgspec.Struct):
    schema: Object


class _OutputConfig(msgspec.Struct):
    format: _AnthropicFormat | None = None


class _Thinking(msgspec.Struct):
    type: str


class MessagesRequest(msgspec.Struct):
    """A request of Anthropic's messages, or of their count of tokens."""

    model: str
    messages: Annotated[list[_AnthropicMessage], msgspec.Meta(min_length=1)]
    system: str | list[_AnthropicBlock] | None = None
    tools: list[_AnthropicTool] | None = None
    tool_choice: _AnthropicToolChoice | None = None
    stop_sequences: list[str] | None = None
    output_config: _OutputConfig | None = None
    max_tokens: Size | None = None
    thinking: _Thinking | None = None
    stream: bool | None = None
