"""Reports read a replica, if the settings name one; everything else uses the database."""

from pathlib import Path

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.databases import PostgreSQL
from tests.gateway_in_process import running_gateway
from tests.services.accounts.usage.usage_records import MIDNIGHT_MS, add, record

KEY = make_admin_key(bytes(32))


async def test_reports_read_the_replica(tmp_path: Path, postgresql: PostgreSQL) -> None:
    """Two databases with different usage stand for the database and a late replica."""
    for name in ("of_requests", "of_reports"):
        await postgresql.execute(f"CREATE DATABASE {name}")
    storage = {
        "data_dir": str(tmp_path),
        "database_url": postgresql.named("of_requests"),
        "reports_url": postgresql.named("of_reports"),
    }
    replica = open_engine(Storage(database_url=storage["reports_url"]))
    await migrate(replica)
    await add(replica, [record(1)])
    await replica.dispose()
    admin = {"key_sha256": hash_admin_key(KEY).hex()}
    since = MIDNIGHT_MS // 1000
    async with running_gateway(tmp_path, storage=storage, admin=admin) as gateway:
        for path in (
            "usage?from_day=2026-11-23&to_day=2026-11-23",
            f"activity?since={since}&until={since + 60}",
        ):
            answer = await gateway.http.get(
                f"{gateway.url}/admin/v1/{path}", headers={"Authorization": f"Bearer {KEY}"}
            )
            assert answer.status == 200
            assert [row["requests"] for row in (await answer.json())["data"]] == [1]
        counted = await (await gateway.http.get(f"{gateway.metrics_url}/metrics")).text()
    assert 'gateway_usage_report_seconds_count{report="activity"} 1.0' in counted
