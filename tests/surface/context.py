"""The rest of a request around a part, so that nothing but the part decides its outcome."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from services.sandbox.model.signatures import sign
from tests.surface.samples import SCHEMAS, THOUGHTS, TOOLS

Json = dict[str, Any]

_FUNCTIONS = [{"name": name, "parameters": SCHEMAS[0]} for name in TOOLS]
_GO_ON = "Go on, say it in json"
_BEFORE = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"})
# Fields that are refused without tools.
_OF_TOOLS = ("tool_choice", "parallel_tool_calls", "function_call")
# What hosted tools of responses need to be among the tools.
_HOSTED: Mapping[str, Json] = {
    "file_search": {"vector_store_ids": ["vs_1"]},
    "code_interpreter": {"container": {"type": "auto"}},
    "mcp": {"server_label": "server_label_sample", "server_url": "https://example.com/mcp"},
    "computer_use": {"type": "computer"},
    "computer_use_preview": {
        **{"display_width": 800, "display_height": 600, "environment": "browser"}
    },
}
_OWN_TOOLS = ("function", "custom", "allowed_tools")
# Fields of a request, and those that it has beside them, which a refusal may name.
NEEDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_TOOLS, ("tools",)),
    "audio": ("modalities",),
    "top_logprobs": ("logprobs", "include"),
}
# Results of Anthropic's own tools, and the calls before them.
_SERVER_TOOLS = {
    "web_search_tool_result": "web_search",
    "web_fetch_tool_result": "web_fetch",
    "advisor_tool_result": "advisor",
    "code_execution_tool_result": "code_execution",
    "bash_code_execution_tool_result": "bash_code_execution",
    "text_editor_code_execution_tool_result": "text_editor_code_execution",
    "tool_search_tool_result": "tool_search_tool_regex",
}
_CHANGES = ("tool_removal",)
# Outputs in the input of responses, and the least call before each.
_CALLS: Mapping[str, Json] = {
    "function_call_output": {"type": "function_call", "name": TOOLS[0], "arguments": "{}"},
    "custom_tool_call_output": {"type": "custom_tool_call", "name": TOOLS[0], "input": "in"},
    "computer_call_output": {
        **{"type": "computer_call", "id": "cu_1", "status": "completed"},
        **{"action": {"type": "screenshot"}, "pending_safety_checks": []},
    },
    "tool_search_output": {"type": "tool_search_call", "arguments": {}},
    "local_shell_call_output": {
        **{"type": "local_shell_call", "id": "lsh_1", "status": "completed"},
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "shell_call_output": {"type": "shell_call", "action": {"commands": ["ls"]}},
    "apply_patch_call_output": {
        **{"type": "apply_patch_call", "status": "completed"},
        "operation": {"type": "delete_file", "path": "a.txt"},
    },
    "program_output": {"type": "program", "id": "prog_1", "code": "1", "fingerprint": "f"},
}
_OUTPUTS: Mapping[str, Json] = {
    "tool_search_call": {"type": "tool_search_output", "tools": []},
    "function_call": {"type": "function_call_output", "output": "Rain"},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": "Rain"},
}


def completed(dialect: str, top: str, body: Json, model: str) -> Json:
    """Return a request of a dialect that has the fields of `body`, and what they need.

    Args:
        dialect: of the request.
        top: the field of the request that the part is in.
        body: the fields.
        model: of the request.
    """
    complete: Callable[[str, Json], Json]
    complete = {"chat": _chat, "messages": _messages, "responses": _responses}[dialect]
    return {**complete(top, body), "model": model}


def _chat(top: str, body: Json) -> Json:
    messages = [*_BEFORE]
    for message in body.get("messages", ()):
        messages += _around_of_chat(message)
    if messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": _GO_ON})
    body = {**body, "messages": messages}
    if top in _OF_TOOLS:
        is_custom = "custom" in str(body.get("tool_choice"))
        kind = "custom" if is_custom else "function"
        tools = [{"name": name} for name in TOOLS] if is_custom else _FUNCTIONS
        body["tools"] = [{"type": kind, kind: tool} for tool in tools]
    if top == "function_call":
        body["functions"] = _FUNCTIONS
        del body["tools"]
    if top == "top_logprobs":
        body["logprobs"] = True
    if top == "stream_options":
        body["stream"] = True
    if top == "audio":
        body["modalities"] = ["text", "audio"]
    return body


def _around_of_chat(message: Json) -> Iterator[Json]:
    call_id, name = message.get("tool_call_id", "call_1"), message.get("name", TOOLS[0])
    function = {"name": name, "arguments": "{}"}
    if message["role"] == "tool":
        call = {"id": call_id, "type": "function", "function": {**function, "name": TOOLS[0]}}
        yield {"role": "assistant", "tool_calls": [call]}
    if message["role"] == "function":
        yield {"role": "assistant", "content": None, "function_call": function}
    said = {"content", "tool_calls", "function_call"}
    if message["role"] == "assistant" and not message.keys() & said:
        message = {**message, "content": "Said"}
    yield message
    for call in message.get("tool_calls", ()):
        yield {"role": "tool", "tool_call_id": call["id"], "content": "Rain"}
    if function_call := message.get("function_call"):
        yield {"role": "function", "name": function_call["name"], "content": "Rain"}


def _messages(top: str, body: Json) -> Json:
    messages = [*_BEFORE]
    for message in body.get("messages", ()):
        messages += _around_of_messages(message)
    if messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": _GO_ON})
    body = {"max_tokens": 4_000, **body, "messages": messages}
    if top == "tool_choice" or any(_changes_tools(message) for message in messages):
        body["tools"] = [{"name": name, "input_schema": SCHEMAS[0]} for name in TOOLS]
    return body


def _changes_tools(message: Json) -> bool:
    content = message["content"]
    return isinstance(content, list) and content[0].get("type") in _CHANGES


def _around_of_messages(message: Json) -> Iterator[Json]:
    content = message.get("content")
    block = content[0] if isinstance(content, list) and content else {}
    kind, call_id = block.get("type"), block.get("tool_use_id")
    if kind == "tool_result":
        call = {"type": "tool_use", "id": call_id, "name": TOOLS[0], "input": {}}
        yield {"role": "assistant", "content": [call]}
    if kind in _SERVER_TOOLS:
        name = _SERVER_TOOLS[str(kind)]
        call = {"type": "server_tool_use", "id": call_id, "name": name, "input": {}}
        message = {**message, "content": [call, *content]}
    if kind == "mcp_tool_result":
        call = {"type": "mcp_tool_use", "id": call_id, "name": "lookup", "input": {}}
        message = {**message, "content": [{**call, "server_name": "wiki"}, *content]}
    if kind == "thinking" and block["thinking"] != THOUGHTS[0]:
        block["signature"] = sign(block["thinking"])
    yield message
    if kind == "tool_use":
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": "Rain"}
        yield {"role": "user", "content": [result]}


def _responses(top: str, body: Json) -> Json:
    if isinstance(body.get("input"), list):
        items = [*_around_of_items(body["input"])]
        last = {"role": "user", "content": _GO_ON}
        body = {**body, "input": [*_BEFORE, *items, last]}
    # What is stored takes time, and decides nothing here.
    body = {"input": _GO_ON, "store": False, **body}
    if top in _OF_TOOLS:
        choice = body.get("tool_choice")
        is_custom = isinstance(choice, dict) and choice.get("type") == "custom"
        if isinstance(choice, dict) and choice["type"] not in _OWN_TOOLS:
            body["tools"] = [{"type": choice["type"], **_HOSTED.get(choice["type"], {})}]
        elif is_custom:
            body["tools"] = [{"type": "custom", "name": name} for name in TOOLS]
        else:
            body["tools"] = [{"type": "function", "strict": False, **one} for one in _FUNCTIONS]
    if top == "stream_options":
        body["stream"] = True
    if top == "top_logprobs":
        body["include"] = ["message.output_text.logprobs"]
    return body


def _around_of_items(items: Iterable[Json]) -> Iterator[Json]:
    for item in items:
        # Those of a search by OpenAI have no id.
        is_search = item.get("type") in ("tool_search_call", "tool_search_output")
        call_id = item.get("call_id", None if is_search else "call_1")
        if call := _CALLS.get(item.get("type", "")):
            yield {**call, "call_id": call_id}
        if item.get("type") == "mcp_approval_response":
            call = {"type": "mcp_approval_request", "id": item["approval_request_id"]}
            yield {**call, "name": "lookup", "server_label": "wiki", "arguments": "{}"}
        yield item
        if item.get("type") == "reasoning":
            yield {"role": "assistant", "content": "Said"}
        if call_id and (output := _OUTPUTS.get(item.get("type", ""))):
            yield {**output, "call_id": call_id}
