"""Fields that a model refuses: the request goes once more without them, and later ones at once."""

from typing import Any

import pytest
from aiohttp import web

from services.inference.refusals import DEFAULTS
from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

SAID = [{"role": "user", "content": "Go"}]


class RefusingServer:
    """A server of OpenAI's dialect that refuses fields, one at a time.

    Attributes:
        refuses: the fields it refuses, in the order in which it tells of them.
        bodies: what it was sent.
    """

    def __init__(self, *refuses: str) -> None:
        self.refuses = refuses
        self.bodies: list[Json] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        for name in self.refuses:
            if name in body:
                error = {"message": f"Unsupported parameter: '{name}'", "param": name}
                return web.json_response({"error": {**error, "code": None}}, status=400)
        choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}}
        choice["finish_reason"] = "stop"
        answer = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
        return web.json_response(answer)


async def ask(gateway: Gateway, model: str = "m", **fields: Any) -> tuple[int, str, Json]:
    """Return the status, what was left out, and the answer."""
    body = {"model": f"openai/{model}", "messages": SAID, **fields}
    url = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        return answer.status, answer.headers.get("x-gateway-dropped", ""), await answer.json()


async def test_a_refused_field_costs_one_request_of_its_model(tmp_path):
    server = RefusingServer("temperature")
    async with running_gateway(tmp_path, server.app()) as gateway:
        for model, requests in (("m", 2), ("m", 1), ("m", 1), ("other", 2)):
            before = len(server.bodies)
            status, dropped, _ = await ask(gateway, model, temperature=0.5, top_p=0.5)
            assert (status, dropped) == (200, "temperature")
            assert len(server.bodies) - before == requests
            assert server.bodies[-1]["top_p"] == 0.5


async def test_a_request_is_changed_so_often_at_most(tmp_path):
    names = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty")
    names += ("user", "metadata", "store", "verbosity", "parallel_tool_calls", "service_tier")
    given: Json = dict.fromkeys(names[:5], 0.5) | {"seed": 1, "user": "u", "metadata": {"a": "b"}}
    given |= {"store": False, "verbosity": "low", "service_tier": "auto"}
    given |= {
        "parallel_tool_calls": True,
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    server = RefusingServer(*names)
    async with running_gateway(tmp_path, server.app()) as gateway:
        status, _, answer = await ask(gateway, **given)
        assert (status, answer["error"]["param"]) == (400, names[8])
        assert len(server.bodies) == 9
        # What was learnt counts for the next request.
        status, dropped, _ = await ask(gateway, **given)
        assert (status, sorted(dropped.split(", "))) == (200, sorted(names))
        assert len(server.bodies) == 13


@pytest.mark.parametrize("name", sorted(DEFAULTS.keys() - {"top_logprobs", "tool_choice"}))
async def test_a_value_that_says_what_holds_anyway_is_left_out(tmp_path, name):
    server = RefusingServer(name)
    async with running_gateway(tmp_path, server.app()) as gateway:
        for requests in (2, 3):
            status, dropped, _ = await ask(gateway, **{name: DEFAULTS[name][0]})
            assert (status, dropped, len(server.bodies)) == (200, "", requests)


async def test_a_value_that_changes_the_answer_is_not(tmp_path):
    server = RefusingServer("logprobs")
    async with running_gateway(tmp_path, server.app()) as gateway:
        for _ in range(2):
            status, _, answer = await ask(gateway, logprobs=True)
            assert (status, answer["error"]["param"]) == (400, "logprobs")
        assert len(server.bodies) == 3  # the second request is not sent again


async def test_counting_knows_what_a_model_refuses(tmp_path):
    bodies: list[Json] = []

    async def messages(request: web.Request) -> web.Response:
        bodies.append(body := await request.json())
        if body["thinking"]["type"] == "enabled":
            message = '"thinking.type.enabled" is not supported for this model.'
            error = {"type": "invalid_request_error", "message": message}
            return web.json_response({"type": "error", "error": error}, status=400)
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        answer |= {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
        usage = {"input_tokens": 7, "output_tokens": 1}
        return web.json_response({**answer, "input_tokens": 7, "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/messages/count_tokens", messages)
    async with running_gateway(tmp_path, app) as gateway:
        body = {"model": "anthropic/m", "messages": SAID, "max_tokens": 2000}
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        for path, requests in (("messages", 2), ("messages/count_tokens", 3)):
            url = f"{gateway.url}/beta/v1/{path}"
            async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
                assert answer.status == 200, await answer.text()
            assert len(bodies) == requests
