"""The services of one process, as whoever starts them sees them."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry
from sqlalchemy import insert

from gateway.accounts.v1.admin_pb2 import CheckAdminKeyRequest
from gateway.accounts.v1.admin_pb2_grpc import AdminServiceStub
from gateway.inference.v1.inference_pb2 import GetModelRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.accounts.admin.admin_keys import make_admin_key
from services.accounts.limits.assembly import BudgetNotifications
from services.accounts.limits.tables import notifications
from services.accounts.repository import AccountRepository
from services.assembly import Services
from services.common import settings as settings_module
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.settings import Settings, Storage
from services.common.settings.budgets import Budgets
from services.common.storage.database import open_engine, write
from services.common.storage.migrations.runner import migrate

CLOSED = "[discovery]\nenabled = false\n"
MINE = '[[models]]\nname = "mine"\nprovider = "sandbox"\nupstream = "echo"\n'


async def test_settings_are_read_again_and_wrong_ones_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(CLOSED)
    monkeypatch.setenv("GATEWAY_CONFIG", str(path))
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    settings = settings_module.load()
    engine = open_engine(settings.storage)
    await migrate(engine)
    key = await AccountRepository(engine).create_key("ada")
    await engine.dispose()
    names = ["accounts", "inference", "memory"]
    services = await Services.start(names, "127.0.0.1:0", settings, Clock())
    try:
        async with open_channel(f"127.0.0.1:{services.port}", max_message_bytes=1 << 20) as channel:
            stub = InferenceServiceStub(channel)
            metadata = call_metadata(key, "req_1")

            async def provider() -> str:
                try:
                    answer = await stub.GetModel(GetModelRequest(name="mine"), metadata=metadata)
                except grpc.aio.AioRpcError as error:
                    assert error.code() is grpc.StatusCode.NOT_FOUND
                    return ""
                return answer.model.provider

            assert await provider() == ""
            path.write_text(CLOSED + MINE)
            services.reload()
            assert await provider() == "sandbox"
            path.write_text("[nonsense")
            services.reload()
            assert await provider() == "sandbox"
    finally:
        await services.stop()


async def test_a_changed_file_changes_the_admin_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file = tmp_path / "gateway.toml", tmp_path / "admin.key"
    path.write_text(f'{CLOSED}[admin]\nkey_file = "{file}"\n')
    monkeypatch.setenv("GATEWAY_CONFIG", str(path))
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    old, new = make_admin_key(bytes(32)), make_admin_key(b"x" * 32)
    file.write_text(old)
    services = await Services.start(["accounts"], "", settings_module.load(), Clock())
    stub = AdminServiceStub(services.channel)

    async def is_valid(key: str) -> bool:
        try:
            await stub.CheckAdminKey(CheckAdminKeyRequest(), metadata=call_metadata(key, ""))
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            return False
        return True

    try:
        file.write_text(new)
        assert await is_valid(old) and not await is_valid(new)
        services.reload()
        assert await is_valid(new) and not await is_valid(old)
        # Settings that are wrong leave those in force.
        file.write_text("gwadmin-short")
        services.reload()
        assert await is_valid(new)
    finally:
        await services.stop()


async def test_the_webhook_of_budgets_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A notification that is stored goes to the webhook of the newest valid settings."""
    path = tmp_path / "gateway.toml"
    path.write_text(CLOSED)
    monkeypatch.setenv("GATEWAY_CONFIG", str(path))
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    received: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def receive(request: web.Request) -> web.Response:
        received.put_nowait((request.path, request.headers["webhook-id"]))
        return web.Response()

    app = web.Application()
    app.router.add_post("/{name}", receive)
    settings = settings_module.load()
    services = await Services.start(["accounts"], "", settings, Clock())
    engine = open_engine(settings.storage)

    async def notify(number: int) -> None:
        day_ms = 86_400_000
        times = {"window_start_ms": 0, "window_end_ms": day_ms, "reached_at_ms": 1}
        budget = {"limit_pusd": 100, "spent_pusd": 90, "soft_limit_percent": 80, "attempts": 0}
        subject = {"subject_kind": "user", "subject_id": "u", "measure": "spend_per_day_pusd"}
        values = {"id": f"msg_{number}", "next_attempt_at_ms": 1, **times, **budget, **subject}
        row = insert(notifications).values(values)
        await write(engine, lambda connection: connection.execute(row))

    def reload(name: str, secret: str = "whsec_" + "a" * 32) -> None:
        url = server.make_url(f"/{name}")
        of_budgets = f'[budgets]\nwebhook_url = "{url}"\nwebhook_secret = "{secret}"\n'
        path.write_text(CLOSED + of_budgets)
        services.reload()

    try:
        async with TestServer(app) as server:
            await notify(1)
            reload("first")
            assert await received.get() == ("/first", "msg_1")
            await notify(2)
            reload("second")
            assert await received.get() == ("/second", "msg_2")
            reload("third", secret="short")
            assert "budgets.webhook_secret" in vars(caplog.records[-1])["error"]
            await notify(3)
            path.write_text(CLOSED)
            services.reload()
            reload("fourth")
            assert await received.get() == ("/fourth", "msg_3")
    finally:
        await services.stop()
        await engine.dispose()


async def test_soft_limits_are_stored_for_a_webhook_alone(tmp_path: Path) -> None:
    without = Settings(storage=Storage(data_dir=tmp_path))
    budgets = {"webhook_url": "http://localhost/", "webhook_secret": "whsec_" + "a" * 32}
    with_webhook = without.model_copy(update={"budgets": Budgets.model_validate(budgets)})
    engine = open_engine(without.storage)
    one = BudgetNotifications(without, engine, Clock(), CollectorRegistry)
    notifies = [one.soft_limits.notifies]
    for settings in (with_webhook, without):
        one.reload(settings)
        notifies.append(one.soft_limits.notifies)
    assert notifies == [False, True, False]
    await one.stop()
    await engine.dispose()


def test_what_few_calls_need_is_not_loaded_before_one_comes(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text(CLOSED)
    code = """
import asyncio, sys
from services.__main__ import SERVICES
from services.assembly import Services
from services.common import settings
from services.common.clock import Clock

async def serve():
    services = await Services.start(SERVICES, "127.0.0.1:0", settings.load(), Clock())
    await services.stop()

asyncio.run(serve())
print(*{name.partition(".")[0] for name in sys.modules})
"""
    environ = {
        **os.environ,
        "GATEWAY_CONFIG": str(tmp_path / "gateway.toml"),
        "GATEWAY_DATA_DIR": str(tmp_path),
        "GATEWAY_DATABASE_URL": "",
    }
    # The first of the two makes the tables.
    for _ in range(2):
        shown = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
        )
    loaded = set(shown.stdout.split())
    assert "sqlalchemy" in loaded
    for_few = {"alembic", "asyncpg", "numpy", "obstore", "puremagic", "Stemmer"}
    assert loaded & for_few == set()
