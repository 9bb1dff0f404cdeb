"""Answers of OpenAI's chat completions with everything documented, whole and as a stream."""

from typing import Any

from tests.services.inference.providers.changes import changed

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 7,
    "total_tokens": 16,
    "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 1, "audio_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 3, "accepted_prediction_tokens": 1},
}
LOGPROBS = {
    "content": [
        {
            "token": "a",
            "logprob": -0.5,
            "bytes": [97],
            "top_logprobs": [{"token": "b", "logprob": -1.5, "bytes": None}],
        }
    ],
    "refusal": None,
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
CUSTOM = {"id": "call_2", "type": "custom", "custom": {"name": "g", "input": "text"}}
HEAD = {
    "id": "chatcmpl-1",
    "created": 1,
    "model": "gpt-1",
    "system_fingerprint": "fp_1",
    "service_tier": "default",
}
COMPLETION = {
    **HEAD,
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "hello",
                "refusal": None,
                "annotations": [],
                "reasoning_content": "hm",
                "tool_calls": [CALL, CUSTOM],
            },
            "logprobs": LOGPROBS,
            "finish_reason": "stop",
        }
    ],
    "usage": USAGE,
}


def chunk(delta: Any, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice], **fields}


def calls(index: int, **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **fields}]}


CHUNKS = [
    chunk({"role": "assistant", "content": None, "refusal": None}),
    chunk({"reasoning_content": "hm"}),
    changed(chunk({"content": "hel"}), {("choices", 0, "logprobs"): LOGPROBS}),
    chunk({"content": "hel"}),
    chunk({"content": [{"type": "text", "text": "lo"}, {"type": "thinking", "thinking": []}]}),
    chunk({"refusal": "no"}),
    chunk(calls(0, id="call_1", type="function", function={"name": "f", "arguments": ""})),
    chunk(calls(0, function={"arguments": '{"a"'})),
    chunk(calls(1, id="call_2", type="custom", custom={"name": "g", "input": "te"})),
    chunk(calls(0, function={"arguments": ":1}"})),
    changed(chunk(calls(1, custom={"input": "xt"})), {("choices", 0, "logprobs"): LOGPROBS}),
    chunk({}, "tool_calls"),
    {**chunk({}), "choices": [], "usage": USAGE},
]
