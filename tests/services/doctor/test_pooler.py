"""`gateway doctor` on a real PgBouncer, where this machine has one."""

from unittest.mock import Mock

import pytest

from services.doctor.pooler import pooler as check
from tests.databases import PostgreSQL
from tests.poolers import newer, older, pooler


@pytest.mark.parametrize(
    ("keeps_statements", "settings", "option", "status", "says"),
    [
        pytest.param(True, "", "", "ok", "PgBouncer 1.", marks=newer),
        pytest.param(True, "", "?statement_cache_size=0", "warning", "slower", marks=newer),
        pytest.param(
            True, "max_prepared_statements = 0", "", "failure", "PgBouncer 1.", marks=newer
        ),
        pytest.param(False, "", "", "failure", "PgBouncer 1.", marks=older),
        pytest.param(False, "", "?statement_cache_size=0", "ok", "works with", marks=older),
    ],
)
async def test_doctor_tells_what_a_pooler_keeps(
    postgresql: PostgreSQL,
    keeps_statements: bool,
    settings: str,
    option: str,
    status: str,
    says: str,
) -> None:
    with pooler(postgresql, keeps_statements=keeps_statements, settings=settings) as between:
        finding = await check(between.url + option)
    assert finding is not None
    assert (finding.status, says in finding.message) == (status, True), finding
    assert ("1.21" in finding.advice) == (status == "failure")


@newer
async def test_doctor_says_nothing_of_other_connections(postgresql: PostgreSQL) -> None:
    assert await check(postgresql.url) is None
    with pooler(postgresql, keeps_statements=True, mode="session") as between:
        assert await check(between.url) is None


async def test_no_connection_stays_open_if_another_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Mock] = []

    async def connect(*_: object) -> Mock:
        if opened:
            raise ConnectionRefusedError
        opened.append(Mock())
        return opened[0]

    monkeypatch.setattr("services.doctor.pooler.connect", connect)
    finding = await check("postgresql://gateway@127.0.0.1/gateway")
    assert finding is not None and finding.status == "warning"
    assert "ConnectionRefusedError" in finding.message
    opened[0].terminate.assert_called_once_with()
