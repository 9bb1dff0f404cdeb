"""Parse requests of OpenAI's responses into canonical requests.

Source: the types of the official SDK, `openai.types.responses`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    MediaKind,
    Message,
    Opaque,
    Thinking,
    ToolResult,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
    WebTool,
)
from services.sandbox.bodies import MARK, bounded, decode, to_json
from services.sandbox.model.signatures import redacted_in, reveal

Json = dict[str, Any]

LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
SOURCES = "web_search_call.action.sources"
WEB_SEARCH = "web_search"
_ROLES = {
    "user": conversation_pb2.ROLE_USER,
    "assistant": conversation_pb2.ROLE_ASSISTANT,
    "system": conversation_pb2.ROLE_SYSTEM,
    "developer": conversation_pb2.ROLE_SYSTEM,
}


def items_of(body: Mapping[str, Any]) -> list[Json]:
    """Return the input items of a body; a string is a user message."""
    items = body.get("input") or []
    if isinstance(items, str):
        return [{"type": "message", "role": "user", "content": items}]
    return list(items)


def kind_of(item: Mapping[str, Any]) -> str:
    """Return the type of an input item, which messages and references may omit."""
    kind = item.get("type")
    return kind or ("message" if "role" in item else "item_reference")


def read_request(body: Mapping[str, Any]) -> GenerateRequest:
    """Parse a request body whose types are right."""
    include = body.get("include") or ()
    choice, allowed = _tool_choice(body)
    tools = [
        tool for definition in body.get("tools") or () if (tool := _tool(definition)) is not None
    ]
    effort = (body.get("reasoning") or {}).get("effort") or ""
    return GenerateRequest(
        messages=list(_messages(body)),
        tools=[tool for tool in tools if allowed is None or tool.name in allowed],
        tool_choice=choice,
        output_format=_output_format((body.get("text") or {}).get("format") or {}),
        max_tokens=bounded(body.get("max_output_tokens")),
        thinking=ThinkingConfig(effort=effort),
        logprobs=LOGPROBS in include,
        top_logprobs=body.get("top_logprobs"),
    )


def _messages(body: Mapping[str, Any]) -> Iterator[Message]:
    if instructions := body.get("instructions"):
        yield Message(role=conversation_pb2.ROLE_SYSTEM, blocks=[Block(text=instructions)])
    for item in items_of(body):
        message = _message(item)
        if message is not None:
            yield message


def _message(item: Json) -> Message | None:
    """Return the message of an item, None for an item that the sandbox's models ignore."""
    assistant = conversation_pb2.ROLE_ASSISTANT
    match kind_of(item):
        case "message":
            return Message(role=_ROLES[item["role"]], blocks=_blocks(item["content"]))
        case "function_call":
            arguments = item["arguments"]
            written = arguments if isinstance(arguments, str) else to_json(arguments).decode()
            call = ToolUse(id=item["call_id"], name=item["name"], input=written)
            return Message(role=assistant, blocks=[Block(tool_use=call)])
        case "custom_tool_call":
            call = ToolUse(
                id=item["call_id"], name=item["name"], input=item["input"], freeform=True
            )
            return Message(role=assistant, blocks=[Block(tool_use=call)])
        case "function_call_output" | "custom_tool_call_output":
            blocks = _blocks(item["output"])
            result = ToolResult(tool_use_id=item.get("call_id") or "", blocks=blocks)
            return Message(role=conversation_pb2.ROLE_USER, blocks=[Block(tool_result=result)])
        case "reasoning":
            thinking = Thinking(text=reveal(redacted_in(item.get("encrypted_content") or "")))
            return Message(role=assistant, blocks=[Block(thinking=thinking)])
    return None


def _blocks(content: object) -> list[Block]:
    """Return the blocks of a text or of parts; none for an item with other content."""
    if isinstance(content, str):
        return [Block(text=content)]
    return [_block(part) for part in content] if isinstance(content, list) else []


def _block(part: Json) -> Block:
    mark = MARK if "prompt_cache_breakpoint" in part else b""
    match part["type"]:
        case "input_text" | "output_text":
            return Block(text=part["text"], cache_control=mark)
        case "refusal":
            return Block(refusal=part["refusal"])
        case "input_image":
            return Block(media=_image(part), cache_control=mark)
    return Block(media=_file(part), cache_control=mark)


def _image(part: Json) -> Media:
    kind = conversation_pb2.MEDIA_KIND_IMAGE
    if url := part.get("image_url"):
        return _from_url(kind, url)
    return Media(kind=kind, file_id=part.get("file_id") or "")


def _file(part: Json) -> Media:
    kind, name = conversation_pb2.MEDIA_KIND_DOCUMENT, part.get("filename", "")
    if data := part.get("file_data"):
        return _from_url(kind, data, name)
    if url := part.get("file_url"):
        return Media(kind=kind, url=url, name=name)
    return Media(kind=kind, file_id=part.get("file_id") or "", name=name)


def _from_url(kind: MediaKind.ValueType, url: str, name: str = "") -> Media:
    if not url.startswith("data:"):
        return Media(kind=kind, url=url, name=name)
    head, _, data = url.removeprefix("data:").partition(",")
    return Media(kind=kind, mime_type=head.partition(";")[0], data=decode(data), name=name)


def _tool(tool: Json) -> Tool | None:
    """Return a function, custom tool or web search; None for a tool that the models ignore."""
    kind = tool["type"]
    if kind.startswith(WEB_SEARCH):
        return Tool(name=WEB_SEARCH, web=WebTool(kind=WebTool.KIND_SEARCH))
    if kind == "custom":
        extra = Opaque(dialect=conversation_pb2.DIALECT_RESPONSES, json=to_json(tool))
        description = tool.get("description") or ""
        return Tool(name=tool["name"], description=description, opaque=True, extra=extra)
    if kind != "function":
        return None
    return Tool(
        name=tool["name"],
        description=tool.get("description") or "",
        input_schema=to_json(tool.get("parameters") or {}),
    )


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, set[str] | None]:
    """Return the choice, and the names of the allowed tools, or None for all."""
    choice = ToolChoice(disable_parallel_tool_use=body.get("parallel_tool_calls") is False)
    allowed: set[str] | None = None
    match body.get("tool_choice"):
        case "none":
            choice.mode = ToolChoice.MODE_NONE
        case "required":
            choice.mode = ToolChoice.MODE_ANY
        case {"type": "allowed_tools", "mode": mode, "tools": tools}:
            allowed = {tool.get("name", WEB_SEARCH) for tool in tools}
            if mode == "required":
                choice.mode = ToolChoice.MODE_ANY
        case {"type": "function" | "custom", "name": name}:
            choice.mode, choice.name = ToolChoice.MODE_TOOL, name
        case {"type": str(kind)} if kind.startswith(WEB_SEARCH):
            choice.mode, choice.name = ToolChoice.MODE_TOOL, WEB_SEARCH
    return choice, allowed


def _output_format(form: Json) -> OutputFormat | None:
    match form.get("type"):
        case "json_schema":
            schema = to_json(form.get("schema") or {})
            return OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=schema)
        case "json_object":
            return OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    return None
