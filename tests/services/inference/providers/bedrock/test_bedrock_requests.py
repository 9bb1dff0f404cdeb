"""Bodies of Converse, each of which AWS's service model accepts."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Block, Thinking
from gateway.inference.v1.inference_pb2 import ThinkingConfig, ToolChoice
from services.common.errors import GatewayError
from services.inference.providers.bedrock.request import build_count
from services.inference.providers.bedrock.sanitizing import model_path
from tests.services.inference.providers.bedrock.calls import CLAUDE, body_of, call_of
from tests.services.inference.providers.caller_paths import dropped_of
from tests.services.inference.providers.gemini_calls import (
    ANTHROPIC,
    ASSISTANT,
    SYSTEM,
    USER,
    called,
    medium,
    result,
    says,
    tool,
)
from tests.upstream.bedrock import rules

MARK = b'{"type":"ephemeral","ttl":"1h"}'
NOVA, NOVA_2 = "us.amazon.nova-pro-v1:0", "us.amazon.nova-2-lite-v1:0"
GPT_OSS, GPT, LLAMA = "openai.gpt-oss-20b-1:0", "openai.gpt-5.6-v1:0", "us.meta.llama4-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"


def effort(value: str) -> dict[str, Any]:
    return {"thinking": ThinkingConfig(effort=value)}


def additional(call: Any) -> Any:
    return body_of(call).get("additionalModelRequestFields")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (CLAUDE, {"thinking": {"type": "enabled", "budget_tokens": 6000}}),
        (NOVA_2, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}}),
        (GPT_OSS, {"reasoning_effort": "high"}),
        (GPT, {"reasoning": {"effort": "high"}}),
        (LLAMA, None),
        (NOVA, None),
    ],
)
def test_effort_by_family(model: str, expected: Any):
    call = call_of(model=model, max_tokens=8000, **effort("high"))
    assert additional(call) == expected
    assert ("reasoning_effort" in dropped_of(call)) == (model in (NOVA_2, LLAMA, NOVA))


def test_the_strongest_effort_of_nova_takes_no_sampling():
    call = call_of(model=NOVA_2, temperature=0.5, top_p=0.5, **effort("high"))
    body = body_of(call)
    assert body["additionalModelRequestFields"]["reasoningConfig"]["maxReasoningEffort"] == "high"
    assert "inferenceConfig" not in body
    assert set(dropped_of(call)) == {"temperature", "top_p"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [(CLAUDE, {"top_k": 5}), (NOVA, {"inferenceConfig": {"topK": 5}}), (LLAMA, None)],
)
def test_top_k_by_family(model: str, expected: Any):
    call = call_of(model=model, top_k=5)
    assert additional(call) == expected
    assert ("top_k" in dropped_of(call)) == (expected is None)


def test_the_name_of_an_arns_model_decides_its_family():
    call = call_of(model=PROFILE, top_k=5)
    assert additional(call) is None
    call = call_of(model=PROFILE, top_k=5)
    call.target = type(call.target)("my-claude", "bedrock", PROFILE)
    assert additional(call) == {"top_k": 5}
    assert model_path(PROFILE).endswith("%3Aapplication-inference-profile%2Fabc123")


def test_marks_become_cache_points_where_models_cache():
    marked = Block(text="long", cache_control=MARK)
    messages = [says(SYSTEM, marked), says(USER, marked, "Hi")]
    tools = [tool(cache_control=MARK)]
    body = body_of(call_of(*messages, tools=tools, dialect=ANTHROPIC))
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["system"] == [{"text": "long"}, point]
    assert body["messages"][0]["content"] == [{"text": "long"}, point, {"text": "Hi"}]
    assert body["toolConfig"]["tools"][1] == point
    call = call_of(*messages, tools=tools, model=LLAMA, dialect=ANTHROPIC)
    assert "cachePoint" not in orjson.dumps(body_of(call)).decode()
    assert "messages[].content[].cache_control" in dropped_of(call)
    assert "tools[].cache_control" in dropped_of(call)


def test_no_cache_point_follows_thinking():
    thought = Block(thinking=Thinking(text="Hm", signature="c2ln"), cache_control=MARK)
    body = body_of(call_of(says(USER, "a"), says(ASSISTANT, thought, "b"), says(USER, "c")))
    assert body["messages"][1]["content"][1] == {"text": "b"}


def test_only_signed_thinking_is_sent():
    thoughts = [
        Block(thinking=Thinking(text="signed", signature="c2ln")),
        Block(thinking=Thinking(text="unsigned")),
        Block(redacted_thinking="aGlkZGVu"),
        Block(redacted_thinking="not base64"),
    ]
    call = call_of(says(USER, "a"), says(ASSISTANT, *thoughts, "b"), says(USER, "c"))
    assert body_of(call)["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "signed", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "aGlkZGVu"}},
        {"text": "b"},
    ]
    assert dropped_of(call)


def test_names_and_ids_fit_the_service_model():
    call_id, name = "a call/" * 20, "look up (now)"
    messages = [
        says(USER, "Hi"),
        says(ASSISTANT, called(call_id, name, '{"a":1}')),
        says(USER, result(call_id, "sunny")),
    ]
    body = body_of(call_of(*messages, tools=[tool(name)]))
    use = body["messages"][1]["content"][0]["toolUse"]
    answer = body["messages"][2]["content"][0]["toolResult"]
    assert use["toolUseId"] == answer["toolUseId"]
    assert use["name"] == body["toolConfig"]["tools"][0]["toolSpec"]["name"]


def test_calls_without_tools_become_text():
    picture = medium("image", mime_type="image/png", data=b"\x89PNG")
    messages = [
        says(USER, "Hi"),
        says(ASSISTANT, called("c1", "f", '{"a":1}')),
        says(USER, result("c1", "sunny", picture), "Sum up"),
    ]
    for fields in ({}, {"tools": [tool()], "tool_choice": ToolChoice(mode=ToolChoice.MODE_NONE)}):
        call = call_of(*messages, **fields)
        body = body_of(call)
        assert "toolConfig" not in body
        assert "sunny" in body["messages"][2]["content"][0]["text"]
        assert "image" in body["messages"][2]["content"][2]
        assert len(call.adapted) == 2


@pytest.mark.parametrize(("model", "has_status"), [(CLAUDE, True), (LLAMA, False)])
def test_failed_results(model: str, has_status: bool):
    messages = [
        says(USER, "Hi"),
        says(ASSISTANT, called("c1")),
        says(USER, result("c1", "no", is_error=True)),
    ]
    body = body_of(call_of(*messages, tools=[tool()], model=model))
    sent = body["messages"][2]["content"][0]["toolResult"]
    assert (sent.get("status") == "error") == has_status
    assert has_status or sent["content"][0] == {"text": "Error:"}


def test_documents_have_names_and_a_text():
    pdf = {"mime_type": "application/pdf", "data": b"%PDF", "name": "Q3  report (1).pdf"}
    body = body_of(call_of(says(USER, medium("document", **pdf), medium("document", **pdf))))
    first, second, text = body["messages"][0]["content"]
    assert first["document"]["format"] == "pdf"
    assert first["document"]["name"] != second["document"]["name"]
    assert text["text"]


def test_conversations_begin_with_the_user():
    messages = [says(ASSISTANT, "How can I help?"), says(USER, "Hi"), says(USER, "there")]
    body = body_of(call_of(*messages))
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]


def test_the_count_is_of_what_is_read():
    call = call_of(says(SYSTEM, "Be brief"), says(USER, "Hi"), max_tokens=5, tools=[tool()])
    body = orjson.loads(build_count(call, pass_stateful=False))
    assert rules.find_problem(body, "anthropic.claude-v1:0", "CountTokens") is None
    assert body["input"]["converse"].keys() == {"messages", "system", "toolConfig"}


def test_media_that_a_family_reads():
    clip = medium("video", mime_type="video/mp4", data=b"clip")
    content = body_of(call_of(says(USER, clip, "Look"), model=NOVA))["messages"][0]["content"]
    assert content[0]["video"]["format"] == "mp4"
    with pytest.raises(GatewayError, match=r"messages\[0\]\.blocks\[0\]"):
        body_of(call_of(says(USER, clip, "Look")))
