"""Reports of `gateway doctor` on the admin key, limits, usage and telemetry."""

import asyncio
import base64
import sys
from pathlib import Path

import pytest

from services.accounts.admin.admin_keys import make_admin_key
from services.common.settings import Admin, Budgets, Limits, Telemetry
from services.doctor import operations
from tests.e2e.processes import free_port
from tests.services.doctor.test_doctor import found, settings

KEY = make_admin_key(b"k" * 32)


async def test_all_is_well_by_default(tmp_path: Path) -> None:
    checks = await found(settings(tmp_path))
    for name in ("admin key", "limits", "usage", "telemetry"):
        assert (checks[name].status, checks[name].advice) == ("ok", "")


def test_an_admin_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    missing = operations.admin_key(Admin(key_file=str(file)), {})
    assert missing.status == "failure"
    assert str(file) in missing.message
    assert operations.admin_key(Admin(key_env="ADMIN"), {}).status == "failure"
    file.write_text("hush")
    damaged = operations.admin_key(Admin(key_file=str(file)), {})
    assert damaged.status == "failure"
    assert "hush" not in str(damaged)
    file.write_text(KEY)
    both = operations.admin_key(Admin(key_file=str(file), key_env="ADMIN"), {"ADMIN": KEY})
    assert (both.status, both.message) == ("ok", "admin.key_env, admin.key_file")


def test_a_webhook_without_a_valid_secret_is_named() -> None:
    budgets = Budgets(webhook_url="https://alerts.test/", webhook_secret_env="SECRET")
    for environ in ({}, {"SECRET": "hush"}, {"SECRET": "whsec_aHVzaA=="}, {"SECRET": "whsec_!"}):
        finding = operations.budget_webhook(budgets, environ)
        assert finding.status == "failure" and "hush" not in str(finding)
    environ = {"SECRET": f"whsec_{base64.b64encode(bytes(24)).decode()}"}
    assert operations.budget_webhook(budgets, environ).status == "ok"
    assert operations.budget_webhook(Budgets(), {}).message == "none"


def test_slots_that_end_before_they_are_renewed_are_named() -> None:
    assert operations.limits(Limits(lease_every_s=10, slot_lease_s=30)).status == "ok"
    short = operations.limits(Limits(lease_every_s=10, slot_lease_s=29))
    assert short.status == "warning"
    assert "limits.slot_lease_s to 30" in short.advice


def test_records_that_wait_are_named(tmp_path: Path) -> None:
    loaded = settings(tmp_path, usage={"max_journal_bytes": 64 << 10})
    folder = tmp_path / "usage"
    folder.mkdir()
    (folder / "a.journal").write_bytes(bytes(32 << 10))
    assert operations.usage(loaded).status == "ok"
    (folder / "b.journal").write_bytes(b"\n")
    full = operations.usage(loaded)
    assert (full.status, "2 files" in full.message) == ("warning", True)
    assert operations.usage(settings(tmp_path, usage={"enabled": False})).status == "ok"


def test_a_journal_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usage").mkdir()
    # Root may write everywhere.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert operations.usage(settings(tmp_path)).status == "failure"
    monkeypatch.undo()
    (tmp_path / "usage").rmdir()
    (tmp_path / "usage").write_text("no folder")
    assert operations.usage(settings(tmp_path)).status == "failure"


async def test_a_collector_is_called() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    for section, environ in (
        (Telemetry(otlp_endpoint=url), {}),
        (Telemetry(), {"OTEL_EXPORTER_OTLP_ENDPOINT": url}),
    ):
        assert (await operations.telemetry(section, environ)).status == "ok"
    server.close()
    await server.wait_closed()
    finding = await operations.telemetry(
        Telemetry(otlp_endpoint=f"http://127.0.0.1:{free_port()}"), {}
    )
    assert finding.status == "warning"
    assert "telemetry.otlp_endpoint" in finding.advice


async def test_telemetry_without_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "services.common.process.telemetry.otlp", None)
    finding = await operations.telemetry(Telemetry(otlp_endpoint="http://127.0.0.1:1"), {})
    assert finding.status == "failure"
    assert "sluicegate[telemetry]" in finding.message
