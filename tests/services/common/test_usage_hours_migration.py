"""Usage records that are older than the sums by hour: migrated at once, summed up in steps."""

from sqlalchemy import func, select

from services.accounts.usage.tables import hours, records
from services.accounts.usage.unsummed import sum_up
from services.common.settings import Storage
from services.common.storage.database import open_engine, reading
from services.common.storage.migrations.runner import migrate
from tests.services.accounts.usage.expected_sums import differences
from tests.services.accounts.usage.old_version import add_as_before
from tests.services.accounts.usage.test_sums import varied
from tests.services.accounts.usage.usage_records import add
from tests.services.common.test_migrations_add import upgraded


async def test_earlier_records_are_summed_in_steps(empty_storage: Storage) -> None:
    engine = open_engine(empty_storage)
    batch = varied(120)
    await upgraded(engine, "0016")
    await add_as_before(engine, batch[:80])
    await migrate(engine)
    # The migration itself does not read them: it would stop the service for as long.
    async with reading(engine) as connection:
        assert await connection.scalar(select(func.count()).select_from(hours)) == 0
    await add(engine, batch[80:100])
    assert [await sum_up(engine, 30) for _ in range(2)] == [30, 30]
    # A worker of the earlier version still runs.
    await add_as_before(engine, batch[100:])
    assert [await sum_up(engine, 30) for _ in range(3)] == [30, 10, 0]
    assert await differences(engine, batch) == []
    async with reading(engine) as connection:
        unsummed = select(func.count()).select_from(records).where(records.c.summed == 0)
        assert await connection.scalar(unsummed) == 0
    await engine.dispose()
