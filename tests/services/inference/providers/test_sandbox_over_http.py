"""The sandbox answers alike in this process and over HTTP."""

import json

import aiohttp
import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    ToolResult,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import (
    OutputFormat,
    ThinkingConfig,
)
from tests.grid import each_row
from tests.services.inference.providers.sandbox_calls import (
    ASSISTANT,
    PNG,
    SCHEMA,
    SYSTEM,
    TOOL,
    USER,
    answered,
    call,
    message,
)
from tests.upstream.app import serving

# One conversation in the words of this process, of OpenAI and of Anthropic.
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "tells", "parameters": SCHEMA},
}
MESSAGES_TOOL = {"name": "get_weather", "description": "tells", "input_schema": SCHEMA}
HI = {"role": "user", "content": "hi"}
ALIKE = {
    "text with a system prompt": (
        call(message(SYSTEM, "be brief"), "hi"),
        {"messages": [{"role": "system", "content": "be brief"}, HI]},
        {"system": "be brief", "messages": [HI]},
    ),
    "several turns": (
        call("one", message(ASSISTANT, "two"), "three"),
        *[{"messages": [HI | {"content": "one"}, {"role": "assistant", "content": "two"},
                        HI | {"content": "three"}]}] * 2,
    ),
    "a prefill": (
        call("hi", message(ASSISTANT, "Well,")),
        *[{"messages": [HI, {"role": "assistant", "content": "Well,"}]}] * 2,
    ),
    "a tool call": (
        call("use the tools in parallel", tools=[TOOL]),
        {"messages": [HI | {"content": "use the tools in parallel"}], "tools": [CHAT_TOOL]},
        {"messages": [HI | {"content": "use the tools in parallel"}], "tools": [MESSAGES_TOOL]},
    ),
    "a tool result": (
        call(
            "hi",
            message(ASSISTANT, Block(tool_use=ToolUse(id="1", name="f", input='{"a": 1}'))),
            message(USER, Block(tool_result=ToolResult(
                tool_use_id="1", blocks=[Block(text="sunny")]))),
        ),
        {"messages": [HI, {"role": "assistant", "tool_calls": [{
            "id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "sunny"}]},
        {"messages": [HI, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "sunny"}]}]},
    ),
    "an image": (
        call(message(USER, "see", Block(media=Media(
            kind=conversation_pb2.MEDIA_KIND_IMAGE, data=PNG, mime_type="image/png")))),
        {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {
                "url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAMAAAAC"}}]}]},
        {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                         "data": "iVBORw0KGgoAAAANSUhEUgAAAAMAAAAC"}}]}]},
    ),
    "thinking": (
        call("hi", thinking=ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE)),
        {"messages": [HI], "reasoning_effort": "medium"},
        {"messages": [HI], "thinking": {"type": "adaptive"}},
    ),
    "a schema": (
        call("hi", output_format=OutputFormat(
            kind=OutputFormat.KIND_JSON_SCHEMA, schema=orjson.dumps(SCHEMA))),
        {"messages": [HI], "response_format": {
            "type": "json_schema", "json_schema": {"name": "trip", "schema": SCHEMA}}},
        {"messages": [HI], "output_config": {
            "format": {"type": "json_schema", "schema": SCHEMA}}},
    ),
    "a stop string": (
        call("hi", stop_sequences=["said"]),
        {"messages": [HI], "stop": ["said"]},
        {"messages": [HI], "stop_sequences": ["said"]},
    ),
    "cached": (
        call("sandbox: cached, is it not?"),
        *[{"messages": [HI | {"content": "sandbox: cached, is it not?"}]}] * 2,
    ),
    "refusal": (
        call("sandbox: refuse"),
        *[{"messages": [HI | {"content": "sandbox: refuse"}]}] * 2,
    ),
}  # fmt: skip


def seen_in_process(response):
    usage, blocks = response.usage, response.choices[0].blocks
    total = usage.input_tokens + usage.cache_read_input_tokens
    return (
        "".join(block.text or block.refusal for block in blocks),
        "".join(block.thinking.text for block in blocks),
        [(b.tool_use.name, json.loads(b.tool_use.input)) for b in blocks if b.HasField("tool_use")],
        (total, usage.output_tokens, usage.cache_read_input_tokens, usage.reasoning_tokens),
    )


def seen_by_openai(body):
    usage, said = body["usage"], body["choices"][0]["message"]
    called = [call["function"] for call in said.get("tool_calls") or ()]
    return (
        said["content"] or said["refusal"] or "",
        said.get("reasoning_content", ""),
        [(one["name"], json.loads(one["arguments"])) for one in called],
        (
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
            usage["completion_tokens_details"]["reasoning_tokens"],
        ),
    )


def seen_by_anthropic(body):
    usage, blocks = body["usage"], body["content"]
    return (
        "".join(block.get("text", "") for block in blocks),
        "".join(block.get("thinking", "") for block in blocks),
        [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        (
            usage["input_tokens"] + usage["cache_read_input_tokens"],
            usage["output_tokens"],
            usage["cache_read_input_tokens"],
            usage["output_tokens_details"]["thinking_tokens"],
        ),
    )


@each_row(("here", "chat", "messages"), ALIKE.values())
async def test_the_answer_is_the_same_whichever_way_the_prompt_came(here, chat, messages):
    expected = seen_in_process(await answered(here))
    async with serving() as upstream, aiohttp.ClientSession(upstream.url) as session:
        headers = {"Authorization": "Bearer k", "anthropic-version": "2023-06-01"}

        async def post(path, body):
            body = {"model": "echo", "max_tokens": 2000, **body}
            async with session.post(path, json=body, headers=headers) as response:
                assert response.status == 200, await response.text()
                return await response.json()

        assert seen_by_openai(await post("/v1/chat/completions", chat)) == expected
        assert seen_by_anthropic(await post("/v1/messages", messages)) == expected
