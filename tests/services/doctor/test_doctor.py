"""`gateway doctor`: what each check says of a part that works, and of one that does not."""

import json
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from services import cli
from services.common.extras import Extra
from services.common.settings import Settings, Storage, parse
from services.common.storage.database import open_engine
from services.common.storage.migrations import HEAD
from services.common.storage.migrations.runner import migrate
from services.doctor import machine
from services.doctor.doctor import examine
from services.doctor.findings import Finding
from services.doctor.providers import clock
from services.media.conversion.confinement import Protections
from services.supervisor.resources import locked
from tests.databases import PostgreSQL
from tests.e2e.processes import free_port
from tests.gateway_in_process import serving

KEY = "sk-hush"


def settings(folder: Path, **sections: Any) -> Settings:
    return parse(
        {
            "discovery": {"enabled": False},
            "server": {"port": 0, "metrics_port": 0},
            "storage": {"data_dir": str(folder)},
            **sections,
        },
        "the test",
    )


async def found(loaded: Settings, environ: Mapping[str, str] | None = None) -> dict[str, Finding]:
    return {finding.check: finding for finding in await examine(loaded, environ or {})}


@asynccontextmanager
async def provider(status: int = 200, ahead_s: float = 0) -> AsyncIterator[dict[str, Any]]:
    """Serve a list of models; yield the section of its provider."""

    async def models(request: web.Request) -> web.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        date = formatdate(time.time() + ahead_s, usegmt=True)
        return web.json_response({"data": []}, status=status, headers={"date": date})

    app = web.Application()
    app.add_routes([web.get("/v1/models", models)])
    async with serving(app) as url:
        yield {"kind": "openai", "base_url": f"{url}/v1", "api_key": KEY}


async def test_a_new_folder_needs_nothing(tmp_path: Path) -> None:
    checks = await found(settings(tmp_path / "var"))
    assert {name for name, finding in checks.items() if finding.status == "failure"} == set()
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize(
    ("status", "expected", "says"),
    [
        (200, "ok", "the API key is valid"),
        (401, "failure", "rejected the API key"),
        (403, "failure", "rejected the API key"),
        (404, "warning", "no list of models"),
        (500, "warning", "HTTP 500"),
    ],
)
async def test_a_provider_s_key_is_tried(
    tmp_path: Path, status: int, expected: str, says: str
) -> None:
    async with provider(status) as section:
        finding = (await found(settings(tmp_path, providers={"a": section})))["provider a"]
    assert (finding.status, says in finding.message) == (expected, True)
    assert KEY not in str(finding)
    assert bool(finding.advice) == (expected != "ok")


async def test_the_right_base_url_is_named(tmp_path: Path) -> None:
    async with provider() as section:
        right = section["base_url"]
        for wrong in (right.removesuffix("/v1"), f"{right}/v1", f"{right}/chat/completions"):
            loaded = settings(tmp_path, providers={"a": {**section, "base_url": wrong}})
            one = (await found(loaded))["provider a"]
            assert (one.status, one.message) == ("failure", "no API answers at its base_url")
            assert one.advice == f'set base_url = "{right}" in [providers.a]'


async def test_a_provider_that_is_not_there_is_named(tmp_path: Path) -> None:
    section = {"kind": "openai", "base_url": f"http://127.0.0.1:{free_port()}", "api_key": KEY}
    checks = await found(settings(tmp_path, providers={"a": section}))
    assert checks["provider a"].status == "failure"
    assert "base_url" in checks["provider a"].advice


async def test_the_sandbox_is_checked_while_it_is_present(tmp_path: Path) -> None:
    section = {"kind": "openai", "base_url": "http://127.0.0.1:1", "api_key_env": "A_KEY"}
    assert "provider sandbox" in await found(settings(tmp_path))
    assert "provider sandbox" not in await found(settings(tmp_path, providers={"a": section}))


async def test_a_missing_key_is_one_finding(tmp_path: Path) -> None:
    section = {"kind": "openai", "base_url": "http://127.0.0.1:1", "api_key_env": "A_KEY"}
    checks = await found(settings(tmp_path, providers={"a": section}))
    assert "A_KEY_FILE" in checks["provider a"].advice
    assert checks["settings"].status == "ok"


@pytest.mark.parametrize(
    ("ahead_s", "expected"), [(0, "ok"), (60, "warning"), (-60, "warning"), (4000, "failure")]
)
async def test_the_clock_is_compared_with_a_provider(
    tmp_path: Path, ahead_s: float, expected: str
) -> None:
    async with provider(ahead_s=ahead_s) as section:
        checks = await found(settings(tmp_path, providers={"a": section}))
    assert checks["clock"].status == expected
    assert "provider a" in checks["clock"].message


def test_one_wrong_clock_of_others_is_no_finding() -> None:
    assert clock({"provider a": 4000.0, "the database": 0.4}).status == "ok"
    assert "behind" in clock({"provider a": 60.0}).message
    assert "ahead of" in clock({"provider a": -60.0}).message


async def test_a_database_of_another_version_is_named(tmp_path: Path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    await engine.dispose()
    loaded = settings(tmp_path)
    assert (await found(loaded))["migrations"].message == (
        f"at step {HEAD}, as this version requires"
    )
    for step, status in (("0001", "warning"), ("9999", "warning")):
        with sqlite3.connect(tmp_path / "gateway.db") as connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (step,))
        connection.close()
        finding = (await found(loaded))["migrations"]
        assert (finding.status, step in finding.message) == (status, True)
    for oldest, status in ((HEAD, "warning"), ("9998", "failure"), (None, "failure")):
        with sqlite3.connect(tmp_path / "gateway.db") as connection:
            connection.execute("UPDATE alembic_version SET oldest_step = ?", (oldest,))
        connection.close()
        finding = (await found(loaded))["migrations"]
        assert finding.status == status
        assert oldest is None or oldest in finding.message + finding.advice


async def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "gateway.db").write_bytes(b"no database at all, but long enough to be read" * 100)
    finding = (await found(settings(tmp_path)))["database"]
    assert finding.status == "failure"
    assert "gateway restore" in finding.advice


async def test_postgresql_is_reached_and_its_clock_read(
    tmp_path: Path, postgresql: PostgreSQL
) -> None:
    storage = {"data_dir": str(tmp_path), "database_url": postgresql.url}
    checks = await found(settings(tmp_path, storage=storage))
    assert checks["database"].message.startswith("PostgreSQL ")
    assert checks["clock"] == Finding("clock", "ok", "same as the database")
    refused = {"data_dir": str(tmp_path), "database_url": "postgresql://a:hunter2@127.0.0.1:1/b"}
    finding = (await found(settings(tmp_path, storage=refused)))["database"]
    assert finding.status == "failure"
    assert "hunter2" not in str(finding)


async def test_blobs_are_written_read_and_deleted(tmp_path: Path) -> None:
    loaded = settings(tmp_path)
    assert (await found(loaded))["blobs"].status == "ok"
    assert list((tmp_path / "files").iterdir()) == []
    (tmp_path / "files").rmdir()
    (tmp_path / "files").write_text("in the way")
    assert (await found(loaded))["blobs"].status == "failure"


async def test_a_bucket_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    storage = {"data_dir": str(tmp_path), "blob_url": "s3://nowhere/a"}
    finding = (await found(settings(tmp_path, storage=storage)))["blobs"]
    assert (finding.status, "AWS_" in finding.advice) == ("failure", True)
    assert "hunter2" not in str(finding)


async def test_disk_and_folder_are_looked_at(tmp_path: Path) -> None:
    async def checks(**storage: Any) -> dict[str, Finding]:
        folder = storage.pop("data_dir", str(tmp_path))
        return await found(settings(tmp_path, storage={"data_dir": folder, **storage}))

    assert (await checks(min_free_bytes=0))["disk"].status == "ok"
    assert (await checks(min_free_bytes=1 << 60))["disk"].status == "failure"
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    assert (await checks(min_free_bytes=free // 2))["disk"].status == "warning"
    os.chmod(tmp_path, 0o755)
    assert (await checks())["data folder"].status == "warning"
    (tmp_path / "file").touch()
    assert (await checks(data_dir=str(tmp_path / "file")))["data folder"].status == "failure"


async def test_a_port_in_use_is_ours_or_another_s(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = {"port": listener.getsockname()[1], "metrics_port": 0}
        loaded = settings(tmp_path, server=server)
        assert (await found(loaded))["server.port"].status == "failure"
        with locked(str(tmp_path)):
            finding = (await found(loaded))["server.port"]
        assert (finding.status, str(os.getpid()) in finding.message) == ("ok", True)


async def test_certificates_are_read(tmp_path: Path) -> None:
    server = {"port": 0, "metrics_port": 0, "tls_certificate": "none", "tls_key": "none"}
    finding = (await found(settings(tmp_path, server=server)))["server.tls_certificate"]
    assert finding.status == "failure"


@pytest.mark.parametrize(
    ("quota", "status"), [("max 100000", "ok"), ("50000 100000", "warning"), ("", "ok")]
)
def test_a_container_s_share_of_the_cores_counts(
    tmp_path: Path, quota: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    (tmp_path / "cpu.max").write_text(quota)
    assert machine.cores(tmp_path / "cpu.max").status == status


@pytest.mark.parametrize(
    ("offered", "status"),
    [(Protections(7, seccomp=True), "ok"), (Protections(0, seccomp=True), "warning")],
)
def test_what_confines_conversions_is_told(offered: Protections, status: str) -> None:
    report = machine.conversions(offered)
    assert report.status == status
    assert ("Landlock" in report.advice) == (status == "warning")


def test_extras_that_are_missing_are_named() -> None:
    (finding,) = machine.extras({"media": Extra("no_such_module", "no PDF", is_usual=True)})
    assert (finding.status, finding.advice) == ("warning", "pip install 'sluicegate[media]'")


def doctor(folder: Path, *arguments: str, toml: str = "") -> Any:
    config = folder / "gateway.toml"
    config.write_text(f"[discovery]\nenabled = false\n{toml}")
    environ = {
        "GATEWAY_CONFIG": str(config),
        "GATEWAY_DATA_DIR": str(folder / "var"),
        "GATEWAY_PORT": str(free_port()),
        "GATEWAY_METRICS_PORT": str(free_port()),
        "GATEWAY_DATABASE_URL": None,
    }
    return CliRunner().invoke(cli.app, ["doctor", *arguments], env=environ)


def names(checks: Sequence[Any]) -> list[str]:
    return [check["check"] for check in checks]


def test_the_exit_status_tells_of_failures(tmp_path: Path) -> None:
    well = doctor(tmp_path, "--json")
    report = json.loads(well.stdout)
    assert well.exit_code == 0, well.output
    assert report["status"] in ("ok", "warning")
    assert {"settings", "disk", "database", "blobs", "clock"} <= set(names(report["checks"]))
    lacking = doctor(
        tmp_path,
        toml='[providers.a]\nkind="openai"\nbase_url="http://127.0.0.1:1"\napi_key_env="A_KEY"\n',
    )
    assert lacking.exit_code == 1
    assert "failure  provider a" in lacking.stdout
    assert "-> set A_KEY" in lacking.stdout
    assert doctor(tmp_path, toml="[nothing]\n").exit_code == 2
