"""Bodies that a caller sends to exhaust the gateway's memory or to keep its loop busy."""

import io
import json
from collections.abc import Callable, Mapping

import aiohttp
import pytest

from tests.attacks.observer import MAX_RSS_GROWTH_MB, Observer
from tests.attacks.worst_case import PARSED_FACTOR
from tests.e2e.gateway import Gateway

MIB = 1 << 20
CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
ASKED = b'[{"role":"user","content":"Hello"}]'


def body(size: int, field: bytes, item: bytes, *, messages: bytes = ASKED) -> bytes:
    """Return a body of about `size` bytes whose `field` is an array of one item over and over."""
    items = b",".join([item] * (size // (len(item) + 1)))
    head = b'{"model":"sandbox/echo","max_tokens":100,"messages":' + messages
    return head + b',"' + field + b'":[' + items + b"]}"


def message_with(size: int, field: bytes, item: bytes, role: bytes = b"assistant") -> bytes:
    """Return a body of about `size` bytes with one message whose `field` is such an array."""
    items = b",".join([item] * (size // (len(item) + 1)))
    message = b'[{"role":"' + role + b'","' + field + b'":[' + items + b"]}]"
    return b'{"model":"sandbox/echo","max_tokens":100,"messages":' + message + b"}"


def fields(size: int, at: str) -> bytes:
    """Return a body of about `size` bytes with an object of very many fields."""
    many = {f"{number:07}": 1 for number in range(size // 13)}
    return json.dumps({"model": "m", "messages": json.loads(ASKED), at: many}).encode()


async def post(target: Gateway, key: str, path: str, content: bytes) -> tuple[int, str]:
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "compat-version": "2023-06-01",
    }
    if path.startswith("/article/"):
        headers["x-api-key"] = headers.pop("Authorization").removeprefix("Bearer ")
    async with (
        aiohttp.ClientSession() as http,
        http.post(target.address + path, data=io.BytesIO(content), headers=headers) as response,
    ):
        return response.status, await response.text()


def message_of(path: str, answer: str) -> str:
    """Return the error's message, once its format has been checked."""
    body: Mapping[str, object] = json.loads(answer)
    if path.startswith("/article/"):
        assert set(body) == {"code", "message", "data"}
        return str(body["message"])
    assert body.get("type") == ("error" if path == MESSAGES else None)
    error = body["error"]
    assert isinstance(error, dict)
    return str(error["message"])


# Bodies are made by their tests: to collect these would take seconds in each test process.
@pytest.mark.thorough(one_in=7)
@pytest.mark.parametrize(
    ("path", "content", "status", "says"),
    [
        pytest.param(
            CHAT,
            lambda: message_with(2 * MIB, b"tool_calls", b"{}"),
            400,
            "messages[0].tool_calls[0].id: is required",
            id="tool calls",
        ),
        pytest.param(
            CHAT,
            lambda: message_with(8 * MIB, b"tool_calls", b"{}"),
            413,
            "the body has more than 1,000,000 JSON values",
            id="very many tool calls",
        ),
        pytest.param(
            MESSAGES,
            lambda: body(MIB, b"stop_sequences", b"1"),
            400,
            "stop_sequences[0]: must be a string",
            id="stop sequences",
        ),
        pytest.param(
            MESSAGES,
            lambda: body(8 * MIB, b"stop_sequences", b"1"),
            413,
            "the body has more than 1,000,000 JSON values",
            id="very many stop sequences",
        ),
        pytest.param(
            MESSAGES,
            lambda: message_with(2 * MIB, b"content", b"[]", b"user"),
            400,
            "messages[0].content[0]: must be an object",
            id="blocks",
        ),
        pytest.param(
            CHAT,
            lambda: fields(6 * MIB, "logit_bias"),
            400,
            "logit_bias: must have at most 10000 fields",
            id="logit bias",
        ),
        pytest.param(
            CHAT,
            lambda: fields(6 * MIB, "multimodal"),
            400,
            "multimodal: must have at most 10000 fields",
            id="unknown fields",
        ),
        pytest.param(
            CHAT,
            lambda: body(2 * MIB, b"metadata", b"{}"),
            400,
            "fields that are passed through: must have at most 200000 values",
            id="metadata",
        ),
        pytest.param(
            CHAT,
            lambda: body(60 * MIB, b"metadata", b"{}"),
            413,
            "the body has more than 1,000,000 JSON values",
            id="60 MB of metadata",
        ),
        pytest.param(
            MESSAGES,
            lambda: body(4 * MIB, b"tools", b'{"type":"a"}'),
            400,
            "tools: must have at most 10000 items",
            id="tools",
        ),
        pytest.param(
            CHAT,
            lambda: b'{"metadata":' + b"[" * (8 * MIB),
            413,
            "the body has more than 1,000,000 JSON values",
            id="deep",
        ),
        pytest.param(
            CHAT,
            lambda: b'{"metadata":' + b"[" * (MIB // 2),
            400,
            "the body is nested more than 200 levels deep",
            id="less deep",
        ),
        pytest.param(
            "/article/v1/doc/create",
            lambda: b'{"name":[' + b"[]," * 600_000 + b"[]]}",
            400,
            "/name: must be a string",
            id="article values that are wrong",
        ),
        pytest.param(
            "/article/v1/block/insert",
            lambda: b'{"sessionId":"s","path":[0],"blocks":[' + b"1," * 990_000 + rb'"\ud800"]}',
            400,
            "/blocks/990000: contains half of a surrogate pair",
            id="article surrogates",
        ),
        pytest.param(
            "/article/v1/block/insert",
            lambda: b'{"sessionId":"s","path":[0],"blocks":[' + b"1," * 1_030_000 + b"1]}",
            413,
            "the body has more than 1,000,000 JSON values",
            id="article values",
        ),
    ],
)
async def test_a_body_that_is_refused(
    target: Gateway,
    attacker_key: str,
    observer: Observer,
    path: str,
    content: Callable[[], bytes],
    status: int,
    says: str,
) -> None:
    large = content()
    async with observer.watch() as measured:
        answered = [await post(target, attacker_key, path, large) for _ in range(2)]
    for answered_status, answer in answered:
        assert answered_status == status, answer[:1000]
        assert message_of(path, answer) == says
    # What a body takes while it is translated is in the formula of docs/limits.md.
    measured.assert_harmless(max(MAX_RSS_GROWTH_MB, PARSED_FACTOR * len(large) / MIB))


TEXT = "What is said in a message, of a length that most have. " * 3


@pytest.mark.thorough(one_in=4)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            lambda: {"messages": [{"role": "user", "content": "x" * (8 * MIB)}]},
            id="one long text",
        ),
        pytest.param(
            lambda: {
                "messages": [
                    {"role": ("assistant", "user")[number % 2], "content": f"{number}: {TEXT}"}
                    for number in range(100_000, 0, -1)
                ]
            },
            id="100,000 messages",
        ),
        pytest.param(
            lambda: {
                "messages": [
                    {"role": role, "content": [{"type": "text", "text": "a"}] * times}
                    for role, times in (("user", 90_000), ("assistant", 90_000), ("user", 1))
                ]
            },
            id="many small parts",
        ),
        pytest.param(
            lambda: {
                "messages": json.loads(ASKED),
                "metadata": {f"{number:07}": 1 for number in range(150_000)},
            },
            id="many fields that are passed on",
        ),
        pytest.param(
            lambda: {
                "messages": json.loads(ASKED),
                "tools": [
                    {"type": "function", "function": {"name": f"tool-{number}"}}
                    for number in range(10_000)
                ],
            },
            id="many tools",
        ),
    ],
)
async def test_a_large_body_that_is_answered(
    target: Gateway,
    attacker_key: str,
    observer: Observer,
    content: Callable[[], Mapping[str, object]],
) -> None:
    written = json.dumps({"model": "sandbox/echo", **content()}).encode()
    async with observer.watch() as measured:
        # A percentile shows no single wait, and so there are some.
        answered = [await post(target, attacker_key, CHAT, written) for _ in range(3)]
    for status, answer in answered:
        assert status == 200, answer[:1000]
    measured.assert_harmless()
