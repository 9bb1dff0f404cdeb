"""The gateway in front of providers that answer as they are told, and callers of every dialect."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.surface.answers import answers
from tests.surface.outcomes import Sent, outcome
from tests.surface.requests import Part
from tests.surface.target import PATHS

_MODELS = {
    "answers_of_chat": "openai/m",
    "answers_of_messages": "anthropic/m",
    "answers_of_responses": "responses/m",
    "answers_of_gemini": "gemini/m",
}
_ASKED = {"messages": [{"role": "user", "content": "Hello"}], "fallback": "disabled"}
BODIES: Mapping[str, Mapping[str, Any]] = {
    "chat": _ASKED,
    "messages": {**_ASKED, "max_tokens": 4_000},
    "responses": {"input": "Hello", "store": False, "fallback": "disabled"},
}
# What the gateway generates for each answer.
VOLATILE = frozenset({"created", "created_at", "completed_at"})
# Names of dropped parts that are not those of the provider: by the kind of the medium.
_NAMED_AS = {"inlineData": "document"}


class AnswerTarget:
    """The gateway, and the answer of its providers."""

    def __init__(self) -> None:
        self.gateway: Gateway
        self._answer: Any = None

    async def serve(self, request: web.Request) -> web.Response:
        """Answer as told."""
        return web.json_response(self._answer)

    async def outcome(self, table: str, part: Part, caller: str) -> str:
        """Return what becomes of a part of an answer for a caller of a dialect."""
        body, others = answers(table, part)
        with_part = await self._ask(table, caller, body)
        without = await self._ask(table, caller, others[0])
        for other in others[1:]:
            if without.status >= 400:
                without = await self._ask(table, caller, other)
        value = (part.value,) if isinstance(part.value, str) else ()
        names = [step.name for step in part.field.steps]
        became = outcome(names, value, replace(with_part, dropped=[]), without)
        is_named = any(name in with_part.dropped for name in _names_in(part))
        return "dropped" if became == "nothing" and is_named else became

    async def _ask(self, table: str, caller: str, answer: Any) -> Sent:
        self._answer = answer
        headers = {**self.gateway.bearer()}
        if caller == "messages":
            headers = self.gateway.api_key()
        body = {**BODIES[caller], "model": _MODELS[table]}
        url = f"{self.gateway.url}{PATHS[caller]}"
        async with self.gateway.http.post(url, json=body, headers=headers) as response:
            text = await response.text()
            header = response.headers.get("x-gateway-dropped", "")
        received = steady(json.loads(text), json.dumps(answer))
        error = text if response.status >= 400 else ""
        return Sent(answer, response.status, error, header.split(", "), (), received)


def _names_in(part: Part) -> Iterator[str]:
    """Yield the names by which a response may say that a part of an answer was dropped."""
    for step in (*part.field.steps, *filter(None, [part.step])):
        yield f"answer.{_NAMED_AS.get(step.name, step.name)}"
        yield f"answer.{step.tag}"


def steady(value: Any, source: str) -> Any:
    """Return an answer without what the gateway generates: times, and ids of its own."""
    if isinstance(value, list):
        return [steady(one, source) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "" if name.endswith("id") and f'"{one}"' not in source else steady(one, source)
        for name, one in value.items()
        if name not in VOLATILE
    }


@asynccontextmanager
async def answering_gateway(folder: Path) -> AsyncIterator[AnswerTarget]:
    """Run a gateway in front of providers that answer as they are told."""
    target, app = AnswerTarget(), web.Application()
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
        app.router.add_post(path, target.serve)
    app.router.add_post("/v1beta/models/m:generateContent", target.serve)
    async with serving(app) as url, with_providers(folder, url) as gateway:
        target.gateway = gateway
        yield target


def with_providers(folder: Path, url: str) -> AbstractAsyncContextManager[Gateway]:
    """Return a gateway in front of the providers at a URL."""
    providers = {
        "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": False},
        "responses": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
        "anthropic": {"kind": "anthropic", "base_url": url},
        "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
    }
    settings = {name: {**one, "api_key": "k"} for name, one in providers.items()}
    return running_gateway(folder, url, providers=settings)
