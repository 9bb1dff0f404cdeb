"""When models are deprecated and removed, in the lists of models."""

from pathlib import Path

import pytest
from aiohttp import web
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.gateway_in_process import running_gateway, serving
from tests.waiting import until

LISTED = [
    {"id": "old", "shutdown_date": "2027-03-01"},
    {"id": "older", "deprecated_at": "2026-05-01T12:00:00Z", "retires_at": "2026-09-01T00:00:00Z"},
    {"id": "gone", "lifecycle": "retired", "deprecated_at": "no date"},
    {"id": "new", "lifecycle": "active", "deprecated_at": None, "shutdown_date": None},
]
MODELS = [
    {"name": "ours", "provider": "maker", "upstream": "old", "deprecated_at": "2026-12-24"},
]
# The stage, the days of the deprecation and of the removal.
EXPECTED = {
    "ours": ("deprecated", "2026-12-24", "2027-03-01"),
    "maker/old": ("deprecated", None, "2027-03-01"),
    "maker/older": ("deprecated", "2026-05-01", "2026-09-01"),
    "maker/gone": ("retired", None, None),
    "maker/new": ("active", None, None),
}


@pytest.mark.asyncio
async def test_dates_of_providers_and_of_the_settings_are_listed(tmp_path: Path) -> None:
    app = web.Application()

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": LISTED})

    app.router.add_get("/v1/models", models)
    async with serving(app) as url:
        maker = {"kind": "openai", "base_url": f"{url}/v1", "api_key": "k"}
        async with running_gateway(
            tmp_path, url, providers={"maker": maker}, models=MODELS
        ) as gateway:
            async with (
                AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as openai,
                AsyncAnthropic(base_url=gateway.url, api_key=gateway.key) as anthropic,
            ):

                async def is_learnt() -> bool:
                    return any([one.id == "maker/new" async for one in openai.models.list()])

                await until(is_learnt)
                chats = [one.to_dict() async for one in openai.models.list()]
                claudes = [one async for one in anthropic.models.list(limit=100)]
    in_openais = {
        one["id"]: (one["lifecycle"], one["deprecated_at"], one["shutdown_date"]) for one in chats
    }
    assert {name: in_openais[str(name)] for name in EXPECTED} == EXPECTED
    in_anthropics = {
        one.id: (
            one.lifecycle,
            *(day and day.date().isoformat() for day in (one.deprecated_at, one.retires_at)),
        )
        for one in claudes
    }
    assert {name: in_anthropics[name] for name in EXPECTED} == EXPECTED
