"""Further models in a field of the dialect itself, and refusals that lead to the next model."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TURNS: Any = [{"role": "user", "content": "Hi"}]
USAGE = {"input_tokens": 1, "output_tokens": 1}


@dataclass
class Upstream:
    """Providers whose model `no` refuses, and `broken` fails; `asked` has what they were sent."""

    asked: list[Json] = field(default_factory=list)
    partial: str = ""  # what the model says before it refuses

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        body = await self._read(request)
        refuses = body["model"] == "no"
        said = {"refusal": "I refuse."} if refuses else {"content": "Yes."}
        choice = {"index": 0, "finish_reason": "stop"}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            message = {"role": "assistant", "content": None, **said}
            return web.json_response({**answer, "choices": [{**choice, "message": message}]})
        delta = {"role": "assistant", **said}
        return _events({**answer, "choices": [{**choice, "delta": delta}]})

    async def _messages(self, request: web.Request) -> web.Response:
        body = await self._read(request)
        refuses = body["model"] == "no"
        text = self.partial if refuses else "Yes."
        reason = "refusal" if refuses else "end_turn"
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
        content = [{"type": "text", "text": text}] if text else []
        start = {**head, "content": [], "stop_reason": None, "usage": USAGE}
        if not body.get("stream"):
            return web.json_response({**start, "content": content, "stop_reason": reason})
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": text}
        said = [
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
        ]
        end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": USAGE}
        return _events(
            {"type": "message_start", "message": start},
            *(said if text else ()),
            end,
            {"type": "message_stop"},
        )

    async def _read(self, request: web.Request) -> Json:
        body: Json = await request.json()
        self.asked.append(body)
        if body["model"] == "broken":
            raise web.HTTPServiceUnavailable
        return body


def _events(*events: Json) -> web.Response:
    lines = [f"event: {one.get('type', '')}\ndata: {json.dumps(one)}\n\n" for one in events]
    if "type" not in events[0]:
        lines.append("data: [DONE]\n\n")
    return web.Response(text="".join(lines), content_type="text/event-stream")


@pytest.fixture
async def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def gateway(tmp_path: Any, upstream: Upstream) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, upstream.app()) as running:
        yield running


@pytest.fixture
async def claude(gateway: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    url = f"{gateway.url}/beta"
    async with anthropic.AsyncAnthropic(
        auth_token=gateway.key, base_url=url, max_retries=0
    ) as client:
        yield client


@pytest.fixture
async def chats(gateway: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"{gateway.url}/beta/v1"
    async with openai.AsyncOpenAI(api_key=gateway.key, base_url=url, max_retries=0) as client:
        yield client


async def message(client: anthropic.AsyncAnthropic, stream: bool, **given: Any) -> Any:
    given = {"max_tokens": 50, "messages": TURNS, **given}
    if not stream:
        return await client.beta.messages.create(**given)
    async with client.beta.messages.stream(**given) as events:
        return await events.get_final_message()


@STREAMED
@pytest.mark.parametrize("first", ["anthropic/no", "openai/no", "anthropic/broken"])
async def test_fallbacks_are_tried_in_order(claude, upstream, first, stream):
    fallbacks = [{"model": "anthropic/no"}, {"model": "openai/x", "max_tokens": 7}]
    answer = await message(claude, stream, model=first, fallbacks=fallbacks)
    assert (answer.content[-1].text, answer.stop_reason) == ("Yes.", "end_turn")
    expected = ["no", "x"] if first == "anthropic/no" else [first.partition("/")[2], "no", "x"]
    assert [body["model"] for body in upstream.asked] == expected
    assert upstream.asked[-1]["max_tokens"] == 7
    assert not any("fallbacks" in body for body in upstream.asked)


@STREAMED
async def test_the_last_refusal_is_the_answer(claude, upstream, stream):
    fields = {"model": "anthropic/no", "fallbacks": [{"model": "anthropic/no", "max_tokens": 5}]}
    answer = await message(claude, stream, **fields)
    assert (answer.stop_reason, len(upstream.asked)) == ("refusal", 2)


async def test_a_partial_answer_is_continued_by_the_next(claude, upstream):
    upstream.partial = "Ye"
    fallbacks = [{"model": "anthropic/x"}]
    answer = await message(claude, True, model="anthropic/no", fallbacks=fallbacks)
    assert answer.stop_reason == "end_turn"
    assert "".join(block.text for block in answer.content).startswith("Ye")
    assert upstream.asked[-1]["model"] == "x"


async def test_a_name_alone_is_one_of_the_same_provider(claude, upstream):
    await message(claude, False, model="anthropic/no", fallbacks=[{"model": "some-model"}])
    assert upstream.asked[-1]["model"] == "some-model"


@STREAMED
async def test_models_are_tried_in_order(chats, upstream, stream):
    models = ["openai/broken", "openai/no", "anthropic/x"]
    fields: Any = {"model": "openai/broken", "messages": TURNS, "extra_body": {"models": models}}
    if stream:
        chunks = [one async for one in await chats.chat.completions.create(**fields, stream=True)]
        text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    else:
        text = (await chats.chat.completions.create(**fields)).choices[0].message.content
    assert text == "Yes."
    assert [body["model"] for body in upstream.asked] == ["broken", "no", "x"]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"fallbacks": [{"model": "anthropic/x"}, {"model": 5}]}, "fallbacks[1].model"),
        ({"fallbacks": ["anthropic/x"]}, "fallbacks[0]"),
        ({"fallbacks": [{"model": "anthropic/x", "seed": 1}]}, "fallbacks[0].seed"),
        ({"fallbacks": [{"model": "anthropic/x", "max_tokens": -1}]}, "fallbacks[0].max_tokens"),
        ({"fallbacks": [{"model": f"anthropic/{n}"} for n in range(17)]}, "fallbacks"),
    ],
)
async def test_a_wrong_entry_is_named(gateway, upstream, given, param):
    body = {"model": "anthropic/no", "max_tokens": 50, "messages": TURNS, **given}
    url, headers = f"{gateway.url}/beta/v1/messages", gateway.api_key()
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]["param"]) == (400, param)
    assert not upstream.asked


async def test_a_chain_of_the_caller_takes_precedence(claude, upstream):
    fields = {"fallbacks": [{"model": "claude-b"}], "extra_body": {"fallback": "disabled"}}
    answer = await message(claude, False, model="anthropic/no", **fields)
    assert answer.stop_reason == "refusal"
    (body,) = upstream.asked
    assert body["fallbacks"] == [{"model": "claude-b"}]


def chain(**fail_on: Any) -> Json:
    steps = [
        {"step_id": "a", "model": "anthropic/no", "fail_on": fail_on},
        {"step_id": "b", "model": "openai/x"},
    ]
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    return {"fallback": "strict", "fallback_config": config}


@STREAMED
async def test_fail_on_may_name_refusals(claude, upstream, stream):
    fields: Any = {"model": "anthropic/no", "extra_body": chain(finish=["refusal"])}
    assert (await message(claude, stream, **fields)).content[-1].text == "Yes."
    fields["extra_body"] = chain(status_code=[503])
    assert (await message(claude, stream, **fields)).stop_reason == "refusal"


async def test_fail_on_takes_no_other_finish_reason(claude):
    with pytest.raises(anthropic.BadRequestError, match="finish"):
        fields: Any = {"model": "anthropic/no", "extra_body": chain(finish=["length"])}
        await message(claude, False, **fields)
