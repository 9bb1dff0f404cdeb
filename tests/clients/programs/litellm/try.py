"""LiteLLM as a client, over both dialects: answers, streams, tools, structured output, batches."""

import json
import time
from functools import partial
from typing import Any

import litellm
from pydantic import BaseModel
from steps import ADDRESS, KEY, MODELS, OF_RESPONSES, run_all, shows_thoughts


class Place(BaseModel):
    """A place where people live."""

    name: str
    population: int


# A batch of three requests takes less than a second.
BATCH_S = 60
# One that the gateway's own workers run, and one of a provider's batch service.
OF_BATCHES = (MODELS[0], OF_RESPONSES[-1])
GET_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}


def asked(dialect: str, model: str, text: str) -> dict[str, Any]:
    base = f"{ADDRESS}/beta/v1" if dialect == "openai" else f"{ADDRESS}/beta"
    return {
        "model": f"{dialect}/{model}",
        "api_base": base,
        "api_key": KEY,
        "max_tokens": 500,
        "max_retries": 0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}],
    }


def check_answers(dialect: str, model: str) -> None:
    question = asked(dialect, model, "hello there")
    answer = litellm.completion(**question)
    assert "hello there" in answer.choices[0].message.content, answer
    assert answer.usage.completion_tokens > 0, answer
    chunks = list(
        litellm.completion(**question, stream=True, stream_options={"include_usage": True})
    )
    built = litellm.stream_chunk_builder(chunks)
    assert built.choices[0].message.content == answer.choices[0].message.content, built


def inputs(message: litellm.Message) -> list[Any]:
    return [json.loads(call.function.arguments) for call in message.tool_calls]


def check_tools(dialect: str, model: str) -> None:
    question = asked(dialect, model, "use get_weather in parallel for Bern")
    question["tools"] = [GET_WEATHER]
    chunks = list(litellm.completion(**question, stream=True))
    built = litellm.stream_chunk_builder(chunks).choices[0].message
    called = litellm.completion(**question).choices[0].message
    assert [call.function.name for call in called.tool_calls] == ["get_weather"] * 2, called
    assert inputs(built) == inputs(called), built
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "14 degrees, rain"}
        for call in called.tool_calls
    ]
    question["messages"] += [called, *results]
    answer = litellm.completion(**question)
    assert "14 degrees, rain" in answer.choices[0].message.content, answer


def check_structured(dialect: str, model: str) -> None:
    question = asked(dialect, model, "describe a place")
    answer = litellm.completion(**question, response_format=Place)
    Place.model_validate_json(answer.choices[0].message.content)


def thinking(model: str) -> None:
    question = asked("anthropic", model, "use get_weather for Bern") | {"max_tokens": 4000}
    question |= {"tools": [GET_WEATHER], "thinking": {"type": "enabled", "budget_tokens": 2000}}
    # LiteLLM keeps thinking to itself for models that it does not know.
    question["allowed_openai_params"] = ["thinking"]
    called = litellm.completion(**question).choices[0].message
    assert bool(getattr(called, "reasoning_content", "")) == shows_thoughts(model), called
    call = called.tool_calls[0]
    result = {"role": "tool", "tool_call_id": call.id, "content": "14 degrees, rain"}
    question["messages"] += [called, result]
    answer = litellm.completion(**question)
    assert "14 degrees, rain" in answer.choices[0].message.content, answer


def batches(model: str) -> None:
    at: dict[str, Any] = {"custom_llm_provider": "openai", "api_key": KEY, "timeout": 30}
    at["api_base"] = f"{ADDRESS}/v1"
    lines = [
        {
            "custom_id": f"r{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": model, "messages": [{"role": "user", "content": f"say {number}"}]},
        }
        for number in range(3)
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    file = litellm.create_file(file=("in.jsonl", text), purpose="batch", **at)
    batch = litellm.create_batch(
        completion_window="24h",
        endpoint="/v1/chat/completions",
        input_file_id=file.id,
        metadata={"a": "b"},
        **at,
    )
    last = time.monotonic() + BATCH_S
    while batch.status in ("validating", "in_progress", "finalizing"):
        assert time.monotonic() < last, f"not completed after {BATCH_S} s: {batch}"
        # Each call of LiteLLM's makes a client, which reads all certificates of the system.
        time.sleep(0.2)
        batch = litellm.retrieve_batch(batch_id=batch.id, **at)
    assert batch.status == "completed" and batch.request_counts.completed == 3, batch
    content = litellm.file_content(file_id=batch.output_file_id, **at).content
    results = [json.loads(line) for line in content.splitlines()]
    assert [result["custom_id"] for result in results] == ["r0", "r1", "r2"], results
    for number, result in enumerate(results):
        message = result["response"]["body"]["choices"][0]["message"]
        assert f"say {number}" in message["content"], result
    assert litellm.list_batches(limit=1, **at).data[0].id == batch.id
    assert litellm.cancel_batch(batch_id=batch.id, **at).status == "completed"


def many_at_once(model: str) -> None:
    question = asked("openai", model, "")
    question["messages"] = [[{"role": "user", "content": f"say {number}"}] for number in range(3)]
    answers = litellm.batch_completion(**question)
    for number, answer in enumerate(answers):
        assert f"say {number}" in answer.choices[0].message.content, answer


def steps(dialect: str) -> list[Any]:
    made = []
    for check in (check_answers, check_tools, check_structured):
        step = partial(check, dialect)
        step.__name__ = f"{dialect} {check.__name__}"
        made.append(step)
    return made


run_all(
    {
        (*steps("openai"), *steps("anthropic"), thinking): MODELS,
        (batches,): OF_BATCHES,
        (many_at_once,): MODELS[:1],
    }
)
