"""A gateway whose provider is itself."""

from aiohttp import web

from services.common.grpc.hops import HOPS_KEY, MAX_HOPS
from tests.gateway_in_process import Gateway, running_gateway

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
HELLO = [{"role": "user", "content": "Hello"}]


class Mirror:
    """An upstream that sends every request on to the gateway it came from.

    Attributes:
        gateway: that gateway.
        passed: what each request said of the gateways it had passed.
    """

    gateway: Gateway

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self._chat)
        self.app.router.add_post("/v1/messages", self._messages)

    async def _chat(self, request: web.Request) -> web.Response:
        return await self._send_on(request, CHAT)

    async def _messages(self, request: web.Request) -> web.Response:
        return await self._send_on(request, MESSAGES)

    async def _send_on(self, request: web.Request, path: str) -> web.Response:
        passed = request.headers[HOPS_KEY]
        self.passed.append(passed)
        headers = {**self.gateway.bearer(), "anthropic-version": "x", HOPS_KEY: passed}
        sent = await request.json() | {"model": f"{'openai' if path == CHAT else 'anthropic'}/m"}
        async with self.gateway.http.post(
            self.gateway.url + path, json=sent, headers=headers
        ) as answer:
            body = await answer.read()
            return web.Response(body=body, status=answer.status, content_type=answer.content_type)


async def ask(gateway: Gateway, path: str, **fields):
    body = {"model": "openai/m", "max_tokens": 9, "messages": HELLO, **fields}
    headers = gateway.bearer() | {"anthropic-version": "x"}
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        return answer, await answer.json()


async def test_a_request_that_goes_round_is_ended(tmp_path):
    mirror = Mirror()
    async with running_gateway(tmp_path, mirror.app) as gateway:
        mirror.gateway = gateway
        for path, model in ((CHAT, "openai/m"), (MESSAGES, "anthropic/m")):
            for stream in (False, True):
                mirror.passed.clear()
                answer, body = await ask(gateway, path, model=model, stream=stream)
                assert answer.status == 508, body
                assert answer.headers["x-should-retry"] == "false"
                assert body["error"]["code"] == "loop_detected"
                assert ("type" in body) is (path == MESSAGES)
                # No retry on the way, or the requests would be a power of them.
                assert mirror.passed == [str(number + 1) for number in range(MAX_HOPS + 1)]


async def test_a_few_gateways_in_a_row_are_fine(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        headers = gateway.bearer()
        body = {"model": "openai/echo", "messages": HELLO}
        for passed, status in (
            ("1", 200),
            (str(MAX_HOPS), 200),
            (str(MAX_HOPS + 1), 508),
            ("9" * 5000, 508),
            ("-9", 200),
            ("x", 200),
            ("", 200),
        ):
            headers[HOPS_KEY] = passed
            async with gateway.http.post(gateway.url + CHAT, json=body, headers=headers) as answer:
                assert answer.status == status, passed
