"""Query local servers for the media that their models read.

Ollama reports the capabilities of each model (`POST /api/show`), llama-server those of its only
model (`GET /props`). Other servers such as vLLM report nothing: their models are sent all kinds of
media until they reject one (`refusals`).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from yarl import URL

from gateway.conversation.v1 import conversation_pb2
from services.common import http
from services.common.errors import GatewayError
from services.common.settings import Provider
from services.inference.facts.catalogue import Inputs
from services.inference.providers.registry import is_own

_TIMEOUT_S = 5.0
_MAX_BYTES = 4 << 20
_MAX_ASKED = 200  # parallel requests per server
_AT_ONCE = 4
_MEDIA = {
    "vision": conversation_pb2.MEDIA_KIND_IMAGE,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
}


async def learn(
    client: http.Client, providers: Mapping[str, Provider], names: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], Inputs]:
    """Return the media that models of local servers read besides text, if reported.

    Args:
        client: the HTTP client.
        providers: the servers; only local ones are queried.
        names: the models, by provider.
    """
    local = {
        name: provider
        for name, provider in providers.items()
        if names.get(name)
        and provider.kind == "openai"
        and is_own(URL(provider.base_url).host or "")
    }
    inputs_by_model = await asyncio.gather(
        *(_inputs(client, provider, names[name][:_MAX_ASKED]) for name, provider in local.items())
    )
    return {
        (provider, model): inputs
        for provider, models in zip(local, inputs_by_model, strict=True)
        for model, inputs in models.items()
    }


async def _inputs(
    client: http.Client, provider: Provider, names: Sequence[str]
) -> dict[str, Inputs]:
    match await _ask(client, provider, "GET", "props"):
        case {"modalities": {**modalities}}:
            inputs = _read(str(name) for name, reads in modalities.items() if reads is True)
            return dict.fromkeys(names, inputs)
    first = await _show(client, provider, names[0])
    if first is None:
        return {}  # not an Ollama server
    turns = asyncio.Semaphore(_AT_ONCE)

    async def show(name: str) -> Inputs | None:
        async with turns:
            return await _show(client, provider, name)

    others = await asyncio.gather(*(show(name) for name in names[1:]))
    descriptions = zip(names, [first, *others], strict=True)
    return {name: inputs for name, inputs in descriptions if inputs is not None}


async def _show(client: http.Client, provider: Provider, name: str) -> Inputs | None:
    match await _ask(client, provider, "POST", "api/show", orjson.dumps({"model": name})):
        case {"capabilities": [*capabilities]}:
            return _read(one for one in capabilities if isinstance(one, str))
    return None


def _read(capabilities: Iterable[str]) -> Inputs:
    return frozenset(_MEDIA[name] for name in capabilities if name in _MEDIA)


async def _ask(
    client: http.Client, provider: Provider, method: str, path: str, body: bytes = b""
) -> Any:
    """Return the JSON of a response, or None if the request failed."""
    base = URL(provider.base_url)
    root = base.with_path(base.path.rstrip("/").removesuffix("/v1")).with_query(None)
    url = root.joinpath(path)
    headers = {"Content-Type": "application/json", **provider.headers}
    if key := provider.key():
        headers.setdefault("Authorization", f"Bearer {key}")
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            response = await client.send(
                http.origin_of(url), method, url.raw_path_qs, http.fields(headers.items()), body
            )
            try:
                content = bytearray()
                while response.status == 200 and (piece := await response.body.read()):
                    content += piece
                    if len(content) > _MAX_BYTES:
                        return None
                return orjson.loads(content)
            finally:
                response.body.release()
    except (GatewayError, http.HttpError, TimeoutError, ValueError):
        return None
