"""Laws that hold for any request: nothing is lost, nothing falls over."""

import base64
import json
from itertools import pairwise
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from facade.dialects.anthropic import parse_messages
from gateway.conversation.v1 import conversation_pb2 as c
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from tests.facade.dialects.anthropic.bodies import body
from tests.thoroughness import examples

text = st.text(min_size=1, max_size=20)
# Without what paths are written with, so that a test can follow them.
names = st.text(st.characters(exclude_characters=".[]#", exclude_categories=["Cs"]), max_size=5)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
any_json = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(names, any_json, max_size=3)
sources = st.binary(min_size=1, max_size=20).map(
    lambda data: {
        "type": "base64",
        "media_type": "image/webp",
        "data": base64.b64encode(data).decode(),
    }
)
spoken = st.builds(lambda text: {"type": "text", "text": text}, text)
seen = st.builds(lambda source: {"type": "image", "source": source}, sources)
unknown = st.builds(lambda rest: {**rest, "type": "new"}, objects)
results = st.builds(
    lambda id, content, is_error: {
        "type": "tool_result",
        "tool_use_id": id,
        "content": content,
        "is_error": is_error,
    },
    text,
    st.lists(spoken | seen | unknown, max_size=3),
    st.booleans(),
)
calls = st.builds(
    lambda id, name, given: {"type": "tool_use", "id": id, "name": name, "input": given},
    text,
    text,
    objects,
)
thoughts = st.builds(
    lambda thinking, signature: {
        "type": "thinking",
        "thinking": thinking,
        "signature": signature,
    },
    text,
    st.text(max_size=9),
)
turns = st.one_of(
    st.builds(
        lambda blocks: {"role": "user", "content": blocks},
        st.lists(spoken | seen | results | unknown, min_size=1, max_size=4),
    ),
    st.builds(
        lambda blocks: {"role": "assistant", "content": blocks},
        st.lists(spoken | calls | thoughts | unknown, min_size=1, max_size=4),
    ),
)


def said(request: GenerateRequest) -> list[tuple[str, dict[str, Any]]]:
    """Write a canonical conversation down as role and block, one after the other."""
    return [
        ("user" if message.role == c.ROLE_USER else "assistant", written(block))
        for message in request.messages
        for block in message.blocks
    ]


def written(block: c.Block) -> dict[str, Any]:
    match block.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": block.text}
        case "media":
            data = base64.b64encode(block.media.data).decode()
            source = {"type": "base64", "media_type": block.media.mime_type, "data": data}
            return {"type": "image", "source": source}
        case "thinking":
            thinking, signature = block.thinking.text, block.thinking.signature
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case "tool_use":
            use = block.tool_use
            given = json.loads(use.input)
            return {"type": "tool_use", "id": use.id, "name": use.name, "input": given}
        case "tool_result":
            result = block.tool_result
            return {
                "type": "tool_result",
                "tool_use_id": result.tool_use_id,
                "content": [written(inner) for inner in result.blocks],
                "is_error": result.is_error,
            }
        case _:
            opaque: dict[str, Any] = json.loads(block.opaque.json)
            return opaque


def read(value: object) -> GenerateRequest:
    return parse_messages(json.dumps(value).encode(), betas=[], coding=False).request


@given(conversation=st.lists(turns, min_size=1, max_size=6))
def test_a_conversation_says_the_same_afterwards(conversation):
    request = read(body(messages=conversation))
    assert said(request) == [
        (message["role"], block) for message in conversation for block in message["content"]
    ]
    roles = [message.role for message in request.messages]
    assert all(one != next for one, next in pairwise(roles))


@given(
    max_tokens=st.integers(1, 2**32 - 1),
    temperature=st.floats(0, 1),
    top_p=st.floats(0, 1),
    top_k=st.integers(1, 2**32 - 1),
    stops=st.lists(text, max_size=4),
    user=text,
    schema=objects,
    extra=st.dictionaries(st.text("xyz", min_size=1), any_json, max_size=3),
)
def test_settings_have_the_same_values_afterwards(
    max_tokens, temperature, top_p, top_k, stops, user, schema, extra
):
    request = read(
        body(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            stop_sequences=stops,
            metadata={"user_id": user},
            tools=[{"name": "a", "input_schema": schema}],
            **extra,
        )
    )
    assert request.max_tokens == max_tokens
    assert (request.temperature, request.top_p, request.top_k) == (temperature, top_p, top_k)
    assert list(request.stop_sequences) == stops
    assert request.end_user == user
    assert json.loads(request.tools[0].input_schema) == schema
    assert json.loads(request.extra.json or b"{}") == extra


WHOLE = body(
    system=[{"type": "text", "text": "s"}],
    messages=[
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {"a": [1]}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [
                        {"type": "image", "source": {"type": "url", "url": "https://a.example"}},
                        {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                        },
                    ],
                }
            ],
        },
    ],
    tools=[{"name": "look", "input_schema": {}}, {"type": "new", "name": "b"}],
    tool_choice={"type": "tool", "name": "look"},
    thinking={"type": "enabled", "budget_tokens": 1024},
    output_config={"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    stop_sequences=["a"],
    metadata={"user_id": "u"},
    multimodal={"image": {"enabled": True}, "pdf": {}},
    fallback="enabled",
    fallback_config={
        "strategy": {"mode": "sequential"},
        "steps": [{"step_id": "a", "model": "m", "parameters": {"thinking": {"type": "disabled"}}}],
    },
    memory_id="m",
    memory_config={"history_window": 5},
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every value in a JSON value."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(place for key, below in inner for place in places(below, (*path, key)))]


@settings(max_examples=examples(100))
@given(place=st.sampled_from(places(WHOLE)), value=any_json)
def test_any_body_is_accepted_or_refused_without_a_crash(place, value):
    whole = json.loads(json.dumps(WHOLE))
    if place:
        holder = whole
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
    else:
        whole = value
    try:
        read(whole)
    except GatewayError as error:
        assert error.http_status == 400
        assert "#" not in error.param
        # The path leads into what was sent, or to what is missing there.
        assert _leads_into(whole, error.param)


def _leads_into(value: Any, path: str) -> bool:
    steps = path.replace("[", ".[").split(".") if path else []
    for position, step in enumerate(steps):
        if step.startswith("[") and isinstance(value, list):
            value = value[int(step[1:-1])]
        elif isinstance(value, dict):
            if step not in value:
                return position == len(steps) - 1
            value = value[step]
        else:
            return False
    return True


@given(cut=st.integers(0, len(orjson.dumps(WHOLE)) - 1))
def test_a_body_that_breaks_off_is_refused(cut):
    try:
        parse_messages(orjson.dumps(WHOLE)[:cut], betas=[], coding=False)
    except GatewayError as error:
        assert "not valid JSON" in error.message
    else:
        raise AssertionError("half a body was taken")
