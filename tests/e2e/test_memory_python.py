"""Remembered conversations with the official Python SDKs: a field more, and nothing else."""

import uuid
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.e2e.gateway import Gateway


@pytest.fixture
def openai_client(front: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as client:
        yield client


@pytest.fixture
def anthropic_client(front: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=f"{front.address}/beta", api_key=front.key, max_retries=0
    ) as client:
        yield client


@pytest.fixture
def memory_id(openai_client: openai.OpenAI) -> Iterator[str]:
    """Return the name of a memory that is forgotten afterwards, as there may be few."""
    name = f"notes-{uuid.uuid4()}"
    yield name
    openai_client.delete(f"/memories/{name}", cast_to=object)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def test_openais_client_sends_the_newest_message_alone(
    openai_client: openai.OpenAI, model: str, memory_id: str
) -> None:
    def say(text: str) -> str:
        answer = openai_client.chat.completions.create(
            model=model, messages=[user(text)], extra_body={"memory_id": memory_id}
        )
        return answer.choices[0].message.content or ""

    say("The key is under the mat.")
    stream = openai_client.chat.completions.create(
        model=model,
        messages=[user("And the dog is asleep.")],
        stream=True,
        extra_body={"memory_id": memory_id},
    )
    assert "asleep" in "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    recited = say("sandbox: recite")
    assert recited.index("under the mat") < recited.index("asleep")


def test_anthropics_client_sends_the_newest_message_alone(
    anthropic_client: anthropic.Anthropic, model: str, memory_id: str
) -> None:
    def say(text: str) -> str:
        answer = anthropic_client.messages.create(
            model=model,
            max_tokens=1000,
            messages=[user(text)],
            extra_body={"memory_id": memory_id},
        )
        return "".join(block.text for block in answer.content if block.type == "text")

    say("The key is under the mat.")
    with anthropic_client.messages.stream(
        model=model,
        max_tokens=1000,
        messages=[user("And the dog is asleep.")],
        extra_body={"memory_id": memory_id},
    ) as stream:
        assert "asleep" in "".join(stream.text_stream)
    recited = say("sandbox: recite")
    assert recited.index("under the mat") < recited.index("asleep")
    counted = anthropic_client.messages.count_tokens(
        model=model, messages=[user("Hi")], extra_body={"memory_id": memory_id}
    )
    assert counted.input_tokens > 50


def test_a_memory_is_looked_into_and_searched(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic, memory_id: str
) -> None:
    for number in range(16):
        openai_client.chat.completions.create(
            model="sandbox/echo",
            messages=[user(f"Shelf {number} holds jar {number}.")],
            extra_body={"memory_id": memory_id, "memory_config": {"history_window": 5}},
        )
    described: Any = anthropic_client.get(f"/v1/memories/{memory_id}", cast_to=object)
    assert (described["type"], described["turns"]) == ("memory", 16)
    assert described["summarised"] >= 5
    assert "jar 0" in described["summary"]
    matches: Any = openai_client.post(
        f"/memories/{memory_id}/search", body={"query": "shelf 3"}, cast_to=object
    )
    assert "Shelf 3 holds" in matches["data"][0]["text"]
    listed: Any = openai_client.get("/memories", cast_to=object)
    assert memory_id in [memory["id"] for memory in listed["data"]]


def test_errors_have_their_classes(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    wrong: Any = {"memory_id": "m", "memory_config": {"history_window": 4}}
    with pytest.raises(openai.BadRequestError) as refused:
        openai_client.chat.completions.create(
            model="sandbox/echo", messages=[user("Hi")], extra_body=wrong
        )
    assert refused.value.param == "memory_config.history_window"
    with pytest.raises(anthropic.BadRequestError, match="history_window"):
        anthropic_client.messages.create(
            model="sandbox/echo", max_tokens=9, messages=[user("Hi")], extra_body=wrong
        )
    with pytest.raises(anthropic.NotFoundError):
        anthropic_client.get(f"/v1/memories/{uuid.uuid4()}", cast_to=object)
