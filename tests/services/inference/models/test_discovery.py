"""Providers that join by themselves, with real servers to find."""

from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from services.common.clock import Clock
from services.common.http import Client
from services.common.settings import Provider, Server, local_servers, parse
from services.common.storage.disk import DiskReserve
from services.common.storage.secrets import Secrets
from services.inference.assembly import Inference, OtherServices, SharedStores
from services.inference.models import discovery
from tests.facade.sockets import refusing_port
from tests.gateway_in_process import serving
from tests.services.inference.fake_adaptation import FreeLease
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories
from tests.services.inference.fake_usage import no_usage
from tests.waiting import until

SECRETS = Secrets({"k": b"s" * 32}, "k", b"c" * 32)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Lengthen the timeout: all servers answer here, and a busy machine may be slow."""
    monkeypatch.setattr(discovery, "_PROBE_TIMEOUT_S", 60.0)


def server(answer: object, status: int = 200) -> web.Application:
    async def models(request: web.Request) -> web.Response:
        if isinstance(answer, str):
            return web.Response(text=answer, status=status)
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    return app


def test_the_gateways_own_port_is_no_server_to_find():
    assert "llama-server" not in local_servers.local_servers(Server())
    assert "llama-server" in local_servers.local_servers(Server(port=9999))


@pytest.mark.parametrize(
    ("answer", "status", "learnt"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}]}, 200, {"one": ["a", "b"]}),
        ({"data": []}, 200, {"one": []}),
        ({"data": [{"id": "x" * 201}, {"id": "c"}]}, 200, {"one": ["c"]}),
        ({"data": [{"id": "a"}] * 2000}, 200, {"one": ["a"] * 1000}),
        ({"data": [{"id": 7}, "x", {"id": "c"}]}, 200, {"one": ["c"]}),
        ({"data": [{"id": "a"}]}, 401, {}),
        ({"models": []}, 200, {}),
        ({"data": [{"id": "a"}, {"id": ""}, {"id": "x" * 257}]}, 200, {"one": ["a"]}),
        ("not JSON", 200, {}),
    ],
)
async def test_a_server_is_known_by_the_models_it_lists(answer, status, learnt):
    async with serving(server(answer, status)) as url, Client(connect_timeout_s=60) as client:
        one = Provider(kind="openai", base_url=f"{url}/v1")
        assert await discovery.learn(client, {"one": one}) == learnt


async def test_anthropics_models_are_listed_by_its_own_rules():
    asked = []

    async def models(request: web.Request) -> web.Response:
        asked.append((request.query_string, request.headers["x-api-key"]))
        assert request.headers["anthropic-version"]
        return web.json_response({"data": [{"id": "claude-x", "type": "model"}]})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    async with serving(app) as url, Client(connect_timeout_s=60) as client:
        one = Provider(kind="anthropic", base_url=url, api_key="k-a")
        assert await discovery.learn(client, {"one": one}) == {"one": ["claude-x"]}
    assert asked == [("limit=1000", "k-a")]


async def test_googles_models_are_listed_a_page_at_a_time():
    asked = []
    chats = ["generateContent", "countTokens"]
    pages = {
        "": {
            "models": [
                {"name": "models/gemini-a", "supportedGenerationMethods": chats},
                {"name": "models/imagen", "supportedGenerationMethods": ["predict"]},
            ],
            "nextPageToken": "two",
        },
        "two": {"nextPageToken": "three"},
        "three": {
            "models": [
                {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                {"name": "tunedModels/mine"},
                {"name": 7},
                None,
            ]
        },
    }

    async def models(request: web.Request) -> web.Response:
        asked.append((request.query["pageSize"], request.headers["x-goog-api-key"]))
        return web.json_response(pages[request.query.get("pageToken", "")])

    app = web.Application()
    app.router.add_get("/v1beta/models", models)
    async with serving(app) as url, Client(connect_timeout_s=60) as client:
        one = Provider(kind="gemini", base_url=f"{url}/v1beta", api_key="k-g")
        learnt = await discovery.learn(client, {"one": one})
    assert learnt == {"one": ["gemini-a", "embed", "tunedModels/mine"]}
    assert asked == [("1000", "k-g")] * 3


@pytest.mark.parametrize("answer", [{"error": {"code": 403}}, [], "not JSON", None])
async def test_an_invalid_list_of_google_models_is_empty(answer):
    async with serving(server(answer)) as url, Client(connect_timeout_s=60) as client:
        one = Provider(kind="gemini", base_url=f"{url}/v1")
        assert await discovery.learn(client, {"one": one}) == {}


async def test_a_list_of_googles_models_without_an_end_is_left():
    async with (
        serving(server({"models": [{"name": "models/a"}], "nextPageToken": "x"})) as url,
        Client(connect_timeout_s=60) as client,
    ):
        one = Provider(kind="gemini", base_url=f"{url}/v1")
        assert await discovery.learn(client, {"one": one}) == {"one": ["a"] * 10}


async def test_a_providers_models_stay_known_while_it_does_not_answer():
    app = web.Application()
    asked = []

    async def models(request: web.Request) -> web.Response:
        asked.append(request)
        status = 200 if len(asked) == 1 else 500
        return web.json_response({"data": [{"id": "m"}]}, status=status)

    app.router.add_get("/v1/models", models)
    async with serving(app) as url:
        one = {"kind": "openai", "base_url": f"{url}/v1"}
        settings = parse({"discovery": {"enabled": False}, "providers": {"one": one}}, "test")
        inference = await Inference.start(
            settings,
            SECRETS,
            Clock(),
            CollectorRegistry(),
            OtherServices(FakeFiles({}), FakeMemories(), no_usage),
            SharedStores(FreeLease(), FreeLease(), DiskReserve(Path(), 0)),
            {},
        )

        def is_listed() -> bool:
            return "one/m" in [model.name for model in inference.engine.routes.models.list()]

        try:
            await until(is_listed)
            await inference.learn()
            assert len(asked) == 2
            assert is_listed()
        finally:
            await inference.stop()


async def test_where_no_server_is_nothing_joins():
    with refusing_port() as port:
        async with Client(connect_timeout_s=60) as client:
            gone = Provider(kind="openai", base_url=f"http://127.0.0.1:{port}/v1")
            assert await discovery.learn(client, {"gone": gone}) == {}


async def test_a_local_server_joins_with_its_models(monkeypatch):
    async with serving(server({"data": [{"id": "llama"}]})) as url:
        monkeypatch.setattr(local_servers, "LOCAL_SERVERS", {"ollama": f"{url}/v1"})
        inference = await Inference.start(
            parse({}, "test"),
            SECRETS,
            Clock(),
            CollectorRegistry(),
            OtherServices(FakeFiles({}), FakeMemories(), no_usage),
            SharedStores(FreeLease(), FreeLease(), DiskReserve(Path(), 0)),
            {},
        )
        try:
            await inference.learn()
            names = [model.name for model in inference.engine.routes.models.list()]
            assert "ollama/llama" in names
            # A server that comes and goes leaves callers the sandbox that they began with.
            assert "sandbox/echo" in names
        finally:
            await inference.stop()


async def test_settings_read_again_take_effect():
    closed = {"discovery": {"enabled": False}}
    inference = await Inference.start(
        parse(closed, "test"),
        SECRETS,
        Clock(),
        CollectorRegistry(),
        OtherServices(FakeFiles({}), FakeMemories(), no_usage),
        SharedStores(FreeLease(), FreeLease(), DiskReserve(Path(), 0)),
        {},
    )
    try:
        mine = {"name": "mine", "provider": "sandbox", "upstream": "echo"}
        inference.reload(parse({**closed, "models": [mine]}, "test"))
        assert inference.engine.routes.models.resolve("mine").upstream == "echo"
    finally:
        await inference.stop()
