"""Providers that join by themselves: a key in the environment, a server on this machine.

Names that the settings use already are left alone. What a local server offers is
learnt in the background and again now and then, so that nobody waits for it.
"""

import asyncio
import logging
from collections.abc import Mapping

import orjson
from yarl import URL

from services.common.errors import GatewayError
from services.common.settings import Provider
from services.inference import http

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 2.0
_MAX_LIST_BYTES = 1 << 20
_MAX_MODELS = 1_000  # of a provider
_MAX_MODEL_NAME = 200  # characters; callers write it behind the provider's name

# Of each provider: its kind, where its key is, where its address may be, its own address.
_KEYED = {
    "openai": ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": (
        "anthropic",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
    ),
}
# Servers of models on their usual ports.
LOCAL_SERVERS = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llama-server": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}


def from_environment(environ: Mapping[str, str]) -> dict[str, Provider]:
    """Give the providers whose key is in the environment."""
    return {
        name: Provider.model_validate(
            {
                "kind": kind,
                "base_url": environ.get(address_variable) or address,
                "api_key_env": key_variable,
            }
        )
        for name, (kind, key_variable, address_variable, address) in _KEYED.items()
        if environ.get(key_variable)
    }


def local_servers(own_port: int) -> dict[str, Provider]:
    """Give the local servers to look for, none of them on the gateway's own port."""
    return {
        name: Provider(kind="openai", base_url=address)
        for name, address in LOCAL_SERVERS.items()
        if f":{own_port}/" not in address
    }


async def learn(client: http.Client, providers: Mapping[str, Provider]) -> dict[str, list[str]]:
    """Give the names of the models of each provider that answers."""
    found = await asyncio.gather(*(_models_of(client, one) for one in providers.values()))
    return {
        name: models for name, models in zip(providers, found, strict=True) if models is not None
    }


async def _models_of(client: http.Client, provider: Provider) -> list[str] | None:
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            listed = orjson.loads(await _ask(client, provider))
    except (GatewayError, http.HttpError, TimeoutError, ValueError):
        return None
    match listed:
        case {"data": [*models]}:
            return [
                model["id"]
                for model in models
                if isinstance(model, dict) and isinstance(model.get("id"), str)
                if len(model["id"]) <= _MAX_MODEL_NAME
            ][:_MAX_MODELS]
    return None


async def _ask(client: http.Client, provider: Provider) -> bytes:
    """Give the answer to what models a server has; b"" where that is no answer."""
    url = URL(provider.base_url).joinpath("models")
    headers = dict(provider.headers)
    if key := provider.key():
        headers.setdefault("Authorization", f"Bearer {key}")
    response = await client.send(
        http.origin_of(url), "GET", url.raw_path_qs, http.fields(headers.items())
    )
    try:
        body = b""
        while response.status == 200 and (piece := await response.read()):
            body += piece
            if len(body) > _MAX_LIST_BYTES:
                return b""
        return body
    finally:
        response.close()
