"""An HTTP upstream that plays deployments of a model, each below a path of its own."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

# Makes the response of a deployment to a body.
Script = Callable[[dict[str, Any]], web.StreamResponse]


def failing(status: int, headers: Mapping[str, str] | None = None, message: str = "no") -> Script:
    """Return a script that answers with an error."""
    body = orjson.dumps({"error": {"message": message}})

    def fail(given: dict[str, Any]) -> web.StreamResponse:
        return web.Response(
            status=status, body=body, headers=headers, content_type="application/json"
        )

    return fail


class DeploymentUpstream:
    """A server whose paths `/NAME/chat/completions` and `/NAME/embeddings` are deployments.

    Attributes:
        scripts: how a deployment answers, by its name; as a model that is well by default.
        headers: of the answers of those that are well, by name.
        asked: the names of the deployments, in the order in which they were asked.
        bodies: what they were sent.
        silent: names of deployments that never answer.
        gate: what all answers wait for; open by default.
        text: what those that are well say after their name.
        is_cut: whether their streams break off after that.
    """

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.headers: dict[str, Mapping[str, str]] = {}
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.silent: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.text = ""
        self.is_cut = False
        self.app = web.Application()
        self.app.router.add_post("/{name}/{rest:.*}", self._answer)

    def providers(self, address: str, *names: str) -> dict[str, Any]:
        """Return the settings of a provider for each deployment, named as it."""
        return {
            name: {"kind": "openai", "base_url": f"{address}/{name}", "api_key": f"key-{name}"}
            for name in names
        }

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        body = orjson.loads(await request.read())
        self.asked.append(name)
        self.bodies.append(body)
        if name in self.silent:
            await asyncio.Event().wait()
        await self.gate.wait()
        if script := self.scripts.get(name):
            return script(body)
        headers = self.headers.get(name)
        if request.match_info["rest"] == "embeddings":
            vector = {"object": "embedding", "index": 0, "embedding": [float(len(name))]}
            told = {"object": "list", "data": [vector], "model": "e", "usage": {"prompt_tokens": 1}}
            return web.json_response(told, headers=headers)
        if not body.get("stream"):
            return web.json_response(completion(name + self.text), headers=headers)
        stream = web.StreamResponse(
            headers={"content-type": "text/event-stream", **(headers or {})}
        )
        await stream.prepare(request)
        for delta, finish in (
            ({"role": "assistant", "content": name + self.text}, None),
            ({}, "stop"),
        ):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
            await stream.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
            if self.is_cut:
                return stream
        await stream.write(b"data: [DONE]\n\n")
        return stream


_HEAD = {"id": "c", "created": 1, "model": "m"}


def completion(text: str) -> dict[str, Any]:
    """Return the body of an answer."""
    message = {"role": "assistant", "content": text}
    return {
        **_HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
