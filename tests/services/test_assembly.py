"""The services of one process, as whoever starts them sees them."""

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from gateway.accounts.v1.admin_pb2 import CheckAdminKeyRequest
from gateway.accounts.v1.admin_pb2_grpc import AdminServiceStub
from gateway.inference.v1.inference_pb2 import GetModelRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.accounts.admin.admin_keys import make_admin_key
from services.accounts.repository import AccountRepository
from services.assembly import Services
from services.common import settings as settings_module
from services.common.clock import Clock
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.storage.database import open_engine
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
