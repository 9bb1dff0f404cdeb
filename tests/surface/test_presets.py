"""What becomes of a chat at each server that is known by name: a line a preset.

The servers at the presets' addresses are imitated by their facts in the catalogue; the columns of
`verdicts/presets.toml` are `COLUMNS`, each with a verdict as in `table`.
"""

import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from services.common.settings.local_servers import LOCAL_SERVERS
from services.common.settings.presets import PRESETS
from services.inference.facts import catalogue
from tests.gateway_in_process import running_gateway, serving
from tests.surface.table import FOLDER, agrees, line

Json = dict[str, Any]

# Fields of a chat that servers differ in.
COLUMNS: Mapping[str, object] = {
    "max_completion_tokens": 50,
    "reasoning_effort": "none",
    "logprobs": False,
    "seed": 7,
    "user": "u-1",
    "top_k": 5,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "properties": {}}},
    },
}
# What a field may become.
INSTEAD: Mapping[str, tuple[str, ...]] = {
    "max_completion_tokens": ("max_tokens",),
    "reasoning_effort": ("thinking", "enable_thinking", "output_config"),
    "response_format": ("output_config", "output_format"),
    "user": ("metadata",),
}
# Those of clouds and of the makers whose dialects have tables of their own.
OWN_TABLES = frozenset({"openai", "anthropic", "gemini", "azure", "bedrock", "vertex"})


class Server:
    """A server of OpenAI's or Anthropic's kind; `sent` is the body of the last request."""

    def __init__(self) -> None:
        self.sent: Json = {}

    async def serve(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"data": []})
        self.sent = await request.json()
        about = {"id": "a", "model": self.sent["model"]}
        if request.path.endswith("/messages"):
            content = [{"type": "text", "text": "{}"}]
            usage = {"input_tokens": 1, "output_tokens": 1}
            body: Json = {**about, "type": "message", "role": "assistant", "content": content}
            return web.json_response({**body, "stop_reason": "end_turn", "usage": usage})
        message = {"role": "assistant", "content": "{}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({**about, "object": "chat.completion", "choices": [choice]})


def addresses() -> Mapping[str, tuple[str, str]]:
    """Return the kind and the address of each preset that this table is about."""
    known = {
        name: (one.kind, one.base_url) for name, one in PRESETS.items() if name not in OWN_TABLES
    }
    return known | {name: ("openai", url) for name, url in LOCAL_SERVERS.items()}


def outcome(field: str, value: object, sent: Json, dropped: list[str]) -> str:
    """Return what became of a field."""
    if sent.get(field) == value:
        return "passes"
    if instead := next((name for name in INSTEAD.get(field, ()) if name in sent), ""):
        return f"to {instead}"
    return "dropped" if any(one.startswith(field) for one in dropped) else "nothing"


async def outcomes(folder: Path) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield the preset's name and what became of each field, for each preset."""
    async with AsyncExitStack() as stack:
        servers, facts, providers = {}, [], {}
        for name, (kind, address) in addresses().items():
            servers[name] = server = Server()
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", server.serve)
            url = await stack.enter_async_context(serving(app))
            own = catalogue.server_facts(kind, address)
            facts.append((kind, (urlsplit(url).netloc,), own))
            base = url if kind == "anthropic" else f"{url}/v1"
            providers[name] = {"kind": kind, "base_url": base, "api_key": "k", "responses": False}
        known = [*facts, *catalogue._SERVERS]
        stack.enter_context(patch.object(catalogue, "_SERVERS", known))
        gateway = await stack.enter_async_context(running_gateway(folder, providers=providers))
        url, headers = f"{gateway.url}/v1/chat/completions", gateway.bearer()
        for name, server in servers.items():
            row = []
            for field, value in COLUMNS.items():
                body = {"model": f"{name}/m", "messages": [{"role": "user", "content": "x"}]}
                async with gateway.http.post(
                    url, json={**body, field: value}, headers=headers
                ) as one:
                    dropped = one.headers.get("x-gateway-dropped", "").split(", ")
                    is_refused = one.status == 400
                    assert is_refused or one.status == 200, await one.text()
                row.append("refused" if is_refused else outcome(field, value, server.sent, dropped))
            yield name, row


@pytest.mark.asyncio
async def test_each_preset_has_a_line_that_holds(tmp_path: Path) -> None:
    rows: Mapping[str, Any] = tomllib.loads((FOLDER / "presets.toml").read_text())
    wrong = []
    names = []
    async for name, row in outcomes(tmp_path):
        names.append(name)
        verdicts = rows.get(name, [])
        expected = [verdicts] * len(row) if isinstance(verdicts, str) else verdicts
        pairs = [*zip(expected, row, strict=False)]
        if len(pairs) != len(COLUMNS) or not all(agrees(*pair) for pair in pairs):
            wrong.append(line(name, row))
    assert not wrong, "\n" + "\n".join(sorted(wrong))
    assert sorted(names) == [*rows]
