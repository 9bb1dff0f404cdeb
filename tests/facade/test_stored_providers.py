"""Providers that administrators store while a gateway runs, over HTTP."""

import asyncio
import base64
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import update

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.accounts.providers.tables import stored_providers
from services.common.settings import Storage
from services.common.storage.database import open_engine, writing
from tests.documents import code_blocks, read
from tests.facade.deployment_upstream import completion
from tests.facade.test_administration_docs import curl
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.services.gateway_command import Command
from tests.waiting import until

ADMIN_KEY = make_admin_key(bytes(32))
FIRST, SECOND = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
SECRET, ROTATED = "sk-first-secret-of-acme", "sk-second-secret-of-acme"


class KeyedUpstream:
    """A server of OpenAI's API that accepts some keys, and records those that it is sent."""

    def __init__(self) -> None:
        self.accepted = {SECRET}
        self.used: list[str] = []
        self.app = web.Application()
        self.app.router.add_get("/v1/models", self._list)
        self.app.router.add_post("/v1/chat/completions", self._answer)

    def _check(self, request: web.Request) -> None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.used.append(key)
        if key not in self.accepted:
            # As OpenAI does, with the key in the message.
            raise web.HTTPUnauthorized(text=f'{{"error": {{"message": "Incorrect: {key}"}}}}')

    async def _list(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.json_response({"object": "list", "data": [{"id": "m-1"}, {"id": "m-2"}]})

    async def _answer(self, request: web.Request) -> web.Response:
        self._check(request)
        await request.read()
        return web.json_response(completion("hello"))


@asynccontextmanager
async def gateway_with(
    folder: Path, keys: str, *, internal: bool = True, **sections: Any
) -> AsyncIterator[Gateway]:
    stored = {"encryption_keys": keys, "internal_addresses": internal}
    async with running_gateway(
        folder,
        admin={"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
        stored_providers=stored,
        **sections,
    ) as gateway:
        yield gateway


async def admin(
    gateway: Gateway, method: str, path: str, body: Any = None
) -> tuple[int, Mapping[str, Any]]:
    """Send a request of an administrator; no answer has a secret of the provider."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    url = f"{gateway.url}/admin/v1{path}"
    async with gateway.http.request(method, url, json=body, headers=headers) as answer:
        text = await answer.text()
        assert SECRET not in text and ROTATED not in text
        return answer.status, await answer.json()


async def chat(gateway: Gateway, model: str = "acme/m-1") -> tuple[int, str]:
    """Send a chat; return the status, and the text or the code of the error."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    url = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        text = await answer.text()
        assert SECRET not in text and ROTATED not in text
        content = await answer.json()
    if answer.status == 200:
        return 200, content["choices"][0]["message"]["content"]
    return answer.status, content["error"]["code"]


async def states_of(gateway: Gateway) -> Mapping[str, str]:
    _, listed = await admin(gateway, "GET", "/stored-providers")
    return {one["id"]: one["state"] for one in listed["data"]}


@pytest.fixture(autouse=True)
def _reads_changes_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.accounts.change_watch.EVERY_S", 0.01)


async def test_a_provider_is_added_rotated_and_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    upstream = KeyedUpstream()
    async with (
        serving(upstream.app) as address,
        gateway_with(tmp_path, FIRST) as one,
        gateway_with(tmp_path, FIRST) as other,
    ):
        acme = {"kind": "openai", "base_url": f"{address}/v1/", "api_key": SECRET}
        assert await chat(other) == (404, "model_not_found")

        _, test = await admin(one, "POST", "/providers/acme/test", {**acme, "api_key": "wrong"})
        assert (test["outcome"], test["status"]) == ("key_rejected", 401)
        _, test = await admin(one, "POST", "/providers/acme/test", acme)
        assert (test["outcome"], test["models"]) == ("valid", ["m-1", "m-2"])
        assert await chat(one) == (404, "model_not_found"), "a test stores nothing"

        status, made = await admin(one, "PUT", "/stored-providers/acme", acme)
        assert (status, made["state"], made["has_key"]) == (200, "active", True)
        assert made["base_url"] == f"{address}/v1"
        # At once where it was made, and soon in every other process.
        assert await chat(one) == (200, "hello")
        await until(lambda: _is(chat(other), (200, "hello")))
        async with other.http.get(f"{other.url}/v1/models", headers=other.bearer()) as models:
            text = await models.text()
        await until(lambda: _lists(other, "acme/m-2"))
        assert SECRET not in text

        # Callers go on while the key is replaced: both are accepted until every process has it.
        upstream.accepted = {SECRET, ROTATED}
        outcomes: list[tuple[int, str]] = []
        is_over = asyncio.Event()

        async def call_on(gateway: Gateway) -> None:
            while not is_over.is_set():
                outcomes.append(await chat(gateway))

        calling = [asyncio.create_task(call_on(gateway)) for gateway in (one, other)]
        status, _ = await admin(one, "PUT", "/stored-providers/acme", {"api_key": ROTATED})
        assert status == 200
        upstream.used.clear()
        await until(lambda: len(upstream.used) > 40 and {*upstream.used[-20:]} == {ROTATED})
        is_over.set()
        await asyncio.gather(*calling)
        assert {*outcomes} == {(200, "hello")}
        upstream.accepted = {ROTATED}
        _, test = await admin(other, "POST", "/providers/acme/test")
        assert test["outcome"] == "valid"

        assert (await admin(one, "DELETE", "/stored-providers/acme"))[0] == 200
        assert await chat(one) == (404, "model_not_found")
        await until(lambda: _is(chat(other), (404, "model_not_found")))
        assert (await admin(one, "DELETE", "/stored-providers/acme"))[0] == 404

        _, log = await admin(one, "GET", "/audit?subject_kind=provider")
        changes = [(entry["action"], entry["after"]) for entry in log["data"]]
        after = {"kind": "openai", "base_url": f"{address}/v1", "has_key": True}
        assert changes == [
            ("provider.delete", None),
            ("provider.rotate", after),
            ("provider.create", after),
        ]
        async with one.http.get(f"{one.metrics_url}/metrics") as metrics:
            shown = await metrics.text()
    for place in (shown, caplog.text, content_of(tmp_path)):
        assert SECRET not in place and ROTATED not in place


def content_of(folder: Path) -> str:
    """Return all files of a folder as one text."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in paths).decode("latin-1")


async def _is(awaitable: Any, expected: Any) -> bool:
    return await awaitable == expected


async def _lists(gateway: Gateway, model: str) -> bool:
    async with gateway.http.get(f"{gateway.url}/v1/models", headers=gateway.bearer()) as answer:
        return any(one["id"] == model for one in (await answer.json())["data"])


async def test_stored_providers_survive_restarts(tmp_path: Path) -> None:
    """Each gateway has other settings, and the database of the one before."""
    upstream = KeyedUpstream()
    async with serving(upstream.app) as address:
        acme = {"kind": "openai", "base_url": f"{address}/v1", "api_key": SECRET}
        async with gateway_with(tmp_path, FIRST) as gateway:
            for name in ("acme", "moved", "named"):
                assert (await admin(gateway, "PUT", f"/stored-providers/{name}", acme))[0] == 200
            status, refused = await admin(gateway, "PUT", "/stored-providers/openai", acme)
            assert (status, refused["error"]["code"]) == (409, "conflict")
            assert "settings" in refused["error"]["message"]
        engine = open_engine(Storage(data_dir=tmp_path))
        async with writing(engine) as connection:
            is_moved = stored_providers.c.name == "moved"
            elsewhere = {"base_url": f"{address}/elsewhere/v1"}
            await connection.execute(update(stored_providers).where(is_moved).values(elsewhere))
        await engine.dispose()

        named = {**acme, "api_key": ROTATED}
        keys = f"{SECOND} {FIRST}"
        async with gateway_with(tmp_path, keys, providers={"named": named}) as gateway:
            states = {"acme": "active", "moved": "locked", "named": "hidden"}
            assert await states_of(gateway) == states
            assert await chat(gateway) == (200, "hello")
            upstream.used.clear()
            # The database alone sends a key nowhere else, and the settings take precedence.
            assert await chat(gateway, "moved/m-1") == (404, "model_not_found")
            assert await chat(gateway, "named/m-1") == (502, "upstream_auth")
            assert {*upstream.used} == {ROTATED}
            assert (await admin(gateway, "PUT", "/stored-providers/named", acme))[0] == 409
        # The keys are encrypted anew by then, also that of the hidden one.
        async with gateway_with(tmp_path, SECOND) as gateway:
            assert await states_of(gateway) == {**states, "named": "active"}
            assert await chat(gateway, "named/m-1") == (200, "hello")
        async with gateway_with(tmp_path, "") as gateway:
            assert {*(await states_of(gateway)).values()} == {"locked"}
            assert await chat(gateway) == (404, "model_not_found")
            status, refused = await admin(gateway, "PUT", "/stored-providers/acme", acme)
            assert (status, refused["error"]["param"]) == (409, "api_key")
            assert "GATEWAY_ENCRYPTION_KEYS" in refused["error"]["message"]
            # It can be tested all the same, for whoever writes it into the settings.
            _, test = await admin(gateway, "POST", "/providers/acme/test", acme)
            assert test["outcome"] == "valid"


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("sandbox", {"kind": "openai", "base_url": "https://a.example"}, 400, "name"),
    ("a b", {"kind": "openai", "base_url": "https://a.example"}, 400, "name"),
    ("new", {}, 400, "kind"),
    ("new", {"kind": "vertex", "base_url": "https://a.example"}, 400, "kind"),
    ("new", {"kind": "openai"}, 400, "base_url"),
    ("new", {"kind": "openai", "base_url": "http://a.example"}, 400, "base_url"),
    ("new", {"kind": "openai", "base_url": "https://u:p@a.example"}, 400, "base_url"),
    ("new", {"kind": "openai", "base_url": "https://a.example/?q"}, 400, "base_url"),
    ("new", {"kind": "openai", "base_url": "https://a.example", "api_key": "a b"}, 400, "api_key"),
    ("new", {"kind": "openai", "base_url": "https://a.example", "key": "a"}, 400, "key"),
    ("groq", {}, 400, "api_key"),
    ("groq", {"api_key": f"gw-{'A' * 43}"}, 400, "api_key"),
    # A key is not sent to another address than that for which it was entered.
    ("kept", {"base_url": "https://b.example"}, 400, "api_key"),
]


async def refused_changes_change_nothing(gateway: Gateway) -> None:
    kept = {"kind": "openai", "base_url": "https://a.example", "api_key": SECRET}
    await admin(gateway, "PUT", "/stored-providers/kept", kept)
    before = await admin(gateway, "GET", "/stored-providers")
    for name, body, status, param in REFUSED:
        answer = await admin(gateway, "PUT", f"/stored-providers/{name}", body)
        assert (answer[0], answer[1]["error"]["param"]) == (status, param), (name, body, answer)
    assert await admin(gateway, "GET", "/stored-providers") == before
    presets = {preset["id"]: preset for preset in before[1]["presets"]}
    assert presets["groq"]["key_variable"] == "GROQ_API_KEY" and "vertex" not in presets


async def test_internal_addresses_are_not_called(tmp_path: Path) -> None:
    connections: list[Any] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    body = {"kind": "openai", "base_url": f"https://localhost:{port}/v1", "api_key": SECRET}
    async with server, gateway_with(tmp_path, FIRST, internal=False) as gateway:
        _, test = await admin(gateway, "POST", "/providers/acme/test", body)
        assert test["outcome"] == "not_allowed"
        assert (await admin(gateway, "PUT", "/stored-providers/acme", body))[0] == 200
        assert await chat(gateway) == (502, "upstream_connection")
        _, test = await admin(gateway, "POST", "/providers/acme/test")
        assert test["outcome"] == "not_allowed"
        assert connections == []
        await refused_changes_change_nothing(gateway)


async def test_the_requests_of_the_page_work(tmp_path: Path) -> None:
    lines = code_blocks(read("docs/stored-providers.md"), "sh")[1].splitlines()
    async with gateway_with(tmp_path, FIRST, internal=False) as gateway:
        answers = [
            await curl(gateway.http, gateway.url, line.replace("ADMIN_KEY", ADMIN_KEY))
            for line in (one.replace("gsk_…", "gsk_1") for one in lines)
        ]
    assert [one["id"] for one in answers[3]["data"]] == ["acme", "groq"]
    assert answers[4]["deleted"]


def test_the_commands_store_a_provider(tmp_path: Path) -> None:
    gateway = Command(tmp_path)
    gateway.config.write_text(f'[stored_providers]\nencryption_keys = "{FIRST}"\n')
    address = "--kind openai --base-url https://llm.example.com/v1"
    gateway(f"stored-providers set acme {address}", answers=SECRET)
    shown = gateway("stored-providers list")[0]
    assert re.search(r"acme +openai +https://llm.example.com/v1 +active", shown)
    assert SECRET not in shown
    gateway("stored-providers delete acme")
    assert "acme" not in gateway("stored-providers list")[0]
