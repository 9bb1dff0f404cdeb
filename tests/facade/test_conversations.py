"""The table of conversations, through both endpoints and over every kind of provider.

The callers are the official SDKs; what they accumulate from a stream must be what they
get whole.
"""

import asyncio
import json
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.facade.conversations import CONVERSATIONS, Conversation, Outcome
from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

FINISHES = {
    # A refusal in the model's own words ends as usual here; the words are its `refusal`.
    "stop": {"end_turn", "stop_sequence", "refusal"},
    "length": {"max_tokens"},
    "tool_calls": {"tool_use"},
    "content_filter": {"refusal"},
}


def cases(endpoint: str) -> list[Any]:
    return [
        pytest.param(conversation, model, id=f"{conversation.name} · {model}")
        for conversation in CONVERSATIONS
        if getattr(conversation, endpoint) is not None
        for model in conversation.models
    ]


@each_row(("conversation", "model"), cases("messages"))
async def test_messages(gateway: Gateway, conversation: Conversation, model: str):
    client = AsyncAnthropic(base_url=f"{gateway.url}/beta", api_key=gateway.key, max_retries=0)
    body = {"max_tokens": 1000, **conversation.messages, "model": model}

    async def streamed() -> Any:
        async with client.messages.stream(**body) as stream:
            return await stream.get_final_message()

    async with client:
        whole, accumulated = await asyncio.gather(client.messages.create(**body), streamed())
    assert messages_outcome(whole) == conversation.outcome
    assert messages_outcome(accumulated) == conversation.outcome
    for message in (whole, accumulated):
        thinking = [block for block in message.content if block.type == "thinking"]
        assert all(block.signature for block in thinking)


@each_row(("conversation", "model"), cases("chat"))
async def test_chat(gateway: Gateway, conversation: Conversation, model: str):
    client = AsyncOpenAI(base_url=f"{gateway.url}/beta/v1", api_key=gateway.key, max_retries=0)
    body = {**conversation.chat, "model": model}

    async def streamed() -> Any:
        stream = await client.chat.completions.create(
            **body, stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in stream]

    async with client:
        whole, chunks = await asyncio.gather(client.chat.completions.create(**body), streamed())
    expected = conversation.outcome
    choice = whole.choices[0]
    got = Outcome(
        text=choice.message.content or choice.message.refusal or "",
        tools=[
            (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ],
        finish=expected.finish if expected.finish in FINISHES[choice.finish_reason] else "?",
        stop_sequence=expected.stop_sequence,
        thinking=bool((choice.message.model_extra or {}).get("reasoning_content")),
        refused=choice.finish_reason == "content_filter" or bool(choice.message.refusal),
        cached=bool(whole.usage.prompt_tokens_details.cached_tokens),
    )
    assert got == expected
    assert chat_accumulated(chunks) == (
        choice.message.content or "",
        choice.message.refusal or "",
        [
            (call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or ()
        ],
        choice.finish_reason,
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


def messages_outcome(message: Any) -> Outcome:
    return Outcome(
        text="".join(block.text for block in message.content if block.type == "text"),
        tools=[(block.name, block.input) for block in message.content if block.type == "tool_use"],
        finish=message.stop_reason,
        stop_sequence=message.stop_sequence,
        thinking=any(block.type == "thinking" and block.thinking for block in message.content),
        refused=message.stop_reason == "refusal",
        cached=bool(message.usage.cache_read_input_tokens),
    )


def chat_accumulated(chunks: list[Any]) -> tuple[str, str, list[tuple[str, str, str]], str]:
    """Add chunks up as the dialect's documentation says."""
    text = refusal = finish = ""
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            refusal += choice.delta.refusal or ""
            finish += choice.finish_reason or ""
            for call in choice.delta.tool_calls or ():
                made = calls.setdefault(call.index, ["", "", ""])
                made[0] += call.id or ""
                made[1] += call.function.name or ""
                made[2] += call.function.arguments or ""
    return text, refusal, [tuple(calls[index]) for index in sorted(calls)], finish
