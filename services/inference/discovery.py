"""Providers that join by themselves: a key in the environment, a server on this machine.

Names that the settings use already are left alone. What a local server offers is
learnt in the background and again now and then, so that nobody waits for it.
"""

import asyncio
import logging
from collections.abc import Mapping

import aiohttp
import orjson

from services.common.settings import Provider

log = logging.getLogger(__name__)

_PROBE_TIMEOUT = aiohttp.ClientTimeout(total=2.0)
_MAX_LIST_BYTES = 1 << 20

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


async def learn(
    session: aiohttp.ClientSession, providers: Mapping[str, Provider]
) -> dict[str, list[str]]:
    """Give the names of the models of each provider that answers."""
    found = await asyncio.gather(*(_models_of(session, one) for one in providers.values()))
    return {
        name: models for name, models in zip(providers, found, strict=True) if models is not None
    }


async def _models_of(session: aiohttp.ClientSession, provider: Provider) -> list[str] | None:
    key = provider.key()
    headers = {"Authorization": f"Bearer {key}", **provider.headers} if key else provider.headers
    try:
        async with session.get(
            f"{provider.base_url.rstrip('/')}/models",
            headers=headers,
            timeout=_PROBE_TIMEOUT,
            allow_redirects=False,
        ) as response:
            if response.status != 200:
                return None
            listed = orjson.loads(await response.content.read(_MAX_LIST_BYTES))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
    match listed:
        case {"data": [*models]}:
            return [
                model["id"]
                for model in models
                if isinstance(model, dict) and isinstance(model.get("id"), str)
            ]
    return None
