"""A tool loop over Gemini's API through both official SDKs, streamed.

The upstream refuses a second step without the thought signature of the first.
"""

import anthropic
import openai

from tests.e2e.gateway import Gateway

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = "Use get_weather"


def test_a_chat(front: Gateway) -> None:
    with openai.OpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as client:
        asked = {
            "model": "gemini/echo",
            "tools": [
                {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
            ],
        }
        hello = {"role": "user", "content": ASKED}
        with client.chat.completions.stream(**asked, messages=[hello]) as stream:
            message = stream.get_final_completion().choices[0].message
        reply = message.model_dump(exclude_none=True, exclude={"parsed"})
        (call,) = reply["tool_calls"]
        assert call["extra_content"]["google"]["thought_signature"]
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
        result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
        again = client.chat.completions.create(**asked, messages=[hello, reply, result])
    assert "sunny" in (again.choices[0].message.content or "")


def test_messages(front: Gateway) -> None:
    with anthropic.Anthropic(
        base_url=f"{front.address}/beta", api_key=front.key, max_retries=0
    ) as client:
        asked = {
            "model": "gemini/echo",
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
        }
        hello = {"role": "user", "content": ASKED}
        with client.messages.stream(**asked, messages=[hello]) as stream:
            content = stream.get_final_message().content
        kinds = [block.type for block in content]
        assert kinds == ["thinking", "text", "redacted_thinking", "tool_use"]
        (call,) = [block for block in content if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        again = client.messages.create(
            **asked,
            messages=[
                hello,
                {"role": "assistant", "content": content},
                {"role": "user", "content": [result]},
            ],
        )
    assert any("sunny" in block.text for block in again.content if block.type == "text")
