"""Providers that join by themselves, with real servers to find."""

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from services.common.ids import Source
from services.common.secrets import Secrets
from services.common.settings import Provider, parse
from services.inference import discovery
from services.inference.assembly import Inference
from services.inference.http import Client
from tests.running import serving
from tests.services.inference.kept import Kept
from tests.services.inference.remembering import Memories

SECRETS = Secrets({"k": b"s" * 32}, "k", b"c" * 32)


def server(answer: object, status: int = 200) -> web.Application:
    async def models(request: web.Request) -> web.Response:
        if isinstance(answer, str):
            return web.Response(text=answer, status=status)
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    return app


def test_a_key_in_the_environment_brings_its_provider():
    found = discovery.from_environment({"OPENAI_API_KEY": "sk-1", "HOME": "/"})
    assert set(found) == {"openai"}
    assert found["openai"].base_url == "https://api.openai.com/v1"
    assert found["openai"].key({"OPENAI_API_KEY": "sk-1"}) == "sk-1"


def test_an_address_in_the_environment_goes_with_its_key():
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://proxy"}
    assert discovery.from_environment(environ)["anthropic"].base_url == "http://proxy"


def test_the_gateways_own_port_is_no_server_to_find():
    assert "llama-server" not in discovery.local_servers(8080)
    assert "llama-server" in discovery.local_servers(9999)


@pytest.mark.parametrize(
    ("answer", "status", "learnt"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}]}, 200, {"one": ["a", "b"]}),
        ({"data": []}, 200, {"one": []}),
        ({"data": [{"id": 7}, "x", {"id": "c"}]}, 200, {"one": ["c"]}),
        ({"data": [{"id": "a"}]}, 401, {}),
        ({"models": []}, 200, {}),
        ({"data": [{"id": "a"}, {"id": ""}, {"id": "x" * 257}]}, 200, {"one": ["a"]}),
        ("not JSON", 200, {}),
    ],
)
async def test_a_server_is_known_by_the_models_it_lists(answer, status, learnt):
    async with serving(server(answer, status)) as url, Client(connect_timeout_s=5) as client:
        one = Provider(kind="openai", base_url=f"{url}/v1")
        assert await discovery.learn(client, {"one": one}) == learnt


async def test_where_no_server_is_nothing_joins():
    async with serving(server({})) as url:
        pass
    async with Client(connect_timeout_s=5) as client:
        gone = Provider(kind="openai", base_url=f"{url}/v1")
        assert await discovery.learn(client, {"gone": gone}) == {}


async def test_a_local_server_joins_with_its_models(monkeypatch):
    async with serving(server({"data": [{"id": "llama"}]})) as url:
        monkeypatch.setattr(discovery, "LOCAL_SERVERS", {"ollama": f"{url}/v1"})
        inference = await Inference.start(
            parse({}, "test"), SECRETS, Source(), CollectorRegistry(), Kept({}), Memories(), {}
        )
        try:
            await inference.learn()
            names = [model.name for model in inference.engine.routes.models.list()]
            assert "ollama/llama" in names
        finally:
            await inference.stop()


async def test_settings_read_again_take_effect():
    closed = {"discovery": {"enabled": False}}
    inference = await Inference.start(
        parse(closed, "test"), SECRETS, Source(), CollectorRegistry(), Kept({}), Memories(), {}
    )
    try:
        mine = {"name": "mine", "provider": "sandbox", "upstream": "echo"}
        inference.reload(parse({**closed, "models": [mine]}, "test"))
        assert inference.engine.routes.models.resolve("mine").upstream == "echo"
    finally:
        await inference.stop()
