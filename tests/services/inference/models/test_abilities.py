"""The inputs that models of local servers accept, as the servers report them."""

from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from gateway.conversation.v1 import conversation_pb2
from services.common.clock import Clock
from services.common.http import Client
from services.common.settings import Provider, local_servers, parse
from services.common.storage.disk import DiskReserve
from services.common.storage.secrets import Secrets
from services.inference.assembly import Inference, OtherServices, SharedStores
from services.inference.models import abilities
from tests.gateway_in_process import serving
from tests.services.inference.fake_adaptation import FreeLease
from tests.services.inference.fake_files import FakeFiles
from tests.services.inference.fake_memories import FakeMemories
from tests.services.inference.fake_usage import no_usage

IMAGE = conversation_pb2.MEDIA_KIND_IMAGE
AUDIO = conversation_pb2.MEDIA_KIND_AUDIO
SECRETS = Secrets({"k": b"s" * 32}, "k", b"c" * 32)
OLLAMA = {"llava:latest": ["completion", "vision"], "qwen": ["completion", "tools"]}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Lengthen the timeout: all servers answer here, and a busy machine may be slow."""
    monkeypatch.setattr(abilities, "_TIMEOUT_S", 60.0)


class Server:
    """A server of models; `shown` tells which it was asked about."""

    def __init__(self, capabilities=None, props=None) -> None:
        self.capabilities = capabilities or {}
        self.props = props
        self.shown: list[str] = []
        self.app = web.Application()
        self.app.router.add_get("/v1/models", self._models)
        if capabilities is not None:
            self.app.router.add_post("/api/show", self._show)
        if props is not None:
            self.app.router.add_get("/props", self._show_props)

    async def _show_props(self, request: web.Request) -> web.Response:
        return web.json_response(self.props)

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.capabilities]})

    async def _show(self, request: web.Request) -> web.Response:
        name = (await request.json())["model"]
        self.shown.append(name)
        if name not in self.capabilities:
            return web.json_response({"error": "not found"}, status=404)
        return web.json_response({"capabilities": self.capabilities[name]})


async def told(server: Server, *names: str):
    async with serving(server.app) as url, Client(connect_timeout_s=60) as client:
        one = Provider(kind="openai", base_url=f"{url}/v1")
        return await abilities.learn(client, {"one": one}, {"one": names})


async def test_ollama_reports_each_model():
    server = Server(OLLAMA)
    assert await told(server, *OLLAMA) == {
        ("one", "llava:latest"): frozenset({IMAGE}),
        ("one", "qwen"): frozenset(),
    }


@pytest.mark.parametrize(
    ("modalities", "inputs"),
    [
        ({"vision": True, "audio": False}, {IMAGE}),
        ({"vision": True, "audio": True}, {IMAGE, AUDIO}),
        ({"vision": False}, set()),
    ],
)
async def test_llama_server_reports_its_model(modalities, inputs):
    server = Server(props={"modalities": modalities})
    assert await told(server, "m") == {("one", "m"): frozenset(inputs)}


@pytest.mark.parametrize(
    "server", [Server(), Server(props={"total_slots": 1}), Server(props=[7]), Server({})]
)
async def test_of_other_servers_nothing_is_known(server):
    assert await told(server, "m", "n") == {}


async def test_servers_of_other_networks_are_not_asked(monkeypatch):
    async def ask(*arguments):
        raise AssertionError("it was asked")

    monkeypatch.setattr(abilities, "_ask", ask)
    async with Client(connect_timeout_s=60) as client:
        providers = {
            "far": Provider(kind="openai", base_url="https://api.example.com/v1"),
            "other": Provider(kind="anthropic", base_url="http://127.0.0.1:1"),
        }
        assert await abilities.learn(client, providers, {key: ["m"] for key in providers}) == {}


async def test_a_local_model_s_inputs_are_looked_up_once(monkeypatch):
    server = Server(OLLAMA)
    async with serving(server.app) as url:
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
            await inference.learn()
            models = inference.engine.routes.models
            assert models.resolve("ollama/llava").inputs == frozenset({IMAGE})
            assert models.resolve("ollama/llava:latest").inputs == frozenset({IMAGE})
            assert models.resolve("ollama/qwen").inputs == frozenset()
            assert models.resolve("ollama/other").inputs is None
            assert sorted(set(server.shown)) == sorted(OLLAMA)
            assert len(server.shown) <= 2 * len(OLLAMA)  # the start's own round may overlap
        finally:
            await inference.stop()
