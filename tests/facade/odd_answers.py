"""A gateway in front of providers of every dialect that answer with the bytes that a test says."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway, serving

Json = dict[str, Any]

PATHS = {"chat": "chat/completions", "messages": "messages", "responses": "responses"}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
# The same tool in each dialect.
_TOOLS: dict[str, Json] = {
    "chat": {"type": "function", "function": FUNCTION},
    "messages": {"name": "f", "input_schema": FUNCTION["parameters"]},
    "responses": {"type": "function", **FUNCTION},
}


class Asking:
    """Asks a gateway whose provider answers with bytes."""

    def __init__(self) -> None:
        self.gateway: Gateway
        self._body = b""
        self._type = ""

    async def serve(self, request: web.Request) -> web.Response:
        """Answer with the bytes."""
        return web.Response(body=self._body, content_type=self._type)

    async def events(self, kind: str, path: str, data: bytes, **fields: Any) -> list[Json]:
        """Return the events that a caller receives of a stream."""
        self._body, self._type = data, "text/event-stream"
        raw = await self._ask(kind, path, stream=True, **fields)
        return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")]

    async def stream(self, kind: str, path: str, data: bytes) -> str:
        """Return the text that a caller receives of a stream."""
        return "".join(map(_text_in, await self.events(kind, path, data)))

    async def fails(self, kind: str, path: str, data: bytes) -> bool:
        """Return whether a stream fails, before its first event or at its end."""
        self._body, self._type = data, "text/event-stream"
        status, text = await self._send(kind, path, stream=True)
        return status >= 500 or '"error"' in text.rpartition("data: ")[2]

    async def whole(self, kind: str, path: str, data: bytes) -> Json:
        """Return what a caller receives of a whole answer."""
        self._body, self._type = data, "application/json"
        answer: Json = json.loads(await self._ask(kind, path))
        return answer

    async def _ask(self, kind: str, path: str, **fields: Any) -> str:
        status, text = await self._send(kind, path, **fields)
        assert status == 200, text
        return text

    async def _send(self, kind: str, path: str, **fields: Any) -> tuple[int, str]:
        body: Json = {"model": f"{kind}/m", "fallback": "disabled", "tools": [_TOOLS[path]]}
        said = [{"role": "user", "content": "Hi"}]
        body |= {"input": "Hi", "store": False} if path == "responses" else {"messages": said}
        body |= {"max_tokens": 100} if path == "messages" else {}
        gateway = self.gateway
        headers = gateway.api_key() if path == "messages" else gateway.bearer()
        url = f"{gateway.url}/beta/v1/{PATHS[path]}"
        async with gateway.http.post(url, json={**body, **fields}, headers=headers) as answer:
            return answer.status, await answer.text("utf-8")


@asynccontextmanager
async def asking_gateway(folder: Path) -> AsyncIterator[Asking]:
    """Run the gateway and its providers."""
    asking, app = Asking(), web.Application()
    app.router.add_post("/{path:.*}", asking.serve)
    async with serving(app) as url:
        providers = {
            "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": False},
            "responses": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        settings = {name: {**one, "api_key": "k"} for name, one in providers.items()}
        async with running_gateway(folder, url, providers=settings) as asking.gateway:
            yield asking


def sse(events: Sequence[Json], between: bytes = b"") -> bytes:
    pieces = [b"data: %b\n\n" % json.dumps(one).encode() for one in events]
    if "choices" in events[0]:
        pieces.append(b"data: [DONE]\n\n")
    return between + b"".join(piece + between for piece in pieces)


def _text_in(event: Json) -> str:
    assert "error" not in event and event.get("type") != "error", event
    if event.get("type") == "response.output_text.delta":
        return str(event["delta"])
    if "choices" in event:
        return "".join(one["delta"].get("content") or "" for one in event["choices"])
    return str(event.get("delta", {}).get("text", "")) if "type" in event else ""


def text_of(path: str, answer: Json) -> str:
    """Return the text of a whole answer."""
    if path == "chat":
        return str(answer["choices"][0]["message"]["content"])
    content = answer["content"] if path == "messages" else answer["output"][0]["content"]
    return "".join(one["text"] for one in content)
