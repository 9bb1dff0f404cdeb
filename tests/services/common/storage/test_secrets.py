import asyncio
from itertools import count

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.storage.secrets import NAMES, SIGNING, load_secrets, table


async def test_secrets_are_made_once_and_read_ever_after(engine: AsyncEngine) -> None:
    made = await load_secrets(engine)
    assert await load_secrets(engine) == made
    assert len(made.signing_keys[made.current_signing_key]) == 32
    assert len(made.service_credential) == 32
    assert made.service_credential not in made.signing_keys.values()


async def test_many_who_load_at_once_get_the_same(engine: AsyncEngine) -> None:
    loaded = await asyncio.gather(*(load_secrets(engine) for _ in range(5)))
    assert all(secrets == loaded[0] for secrets in loaded)
    async with engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(table)) == len(NAMES)


async def test_the_newest_key_signs_and_older_ones_still_prove(engine: AsyncEngine) -> None:
    numbers = count()

    def new_id(prefix: str) -> str:
        return f"{prefix}{next(numbers)}"

    clock = Clock(now=lambda: 1000.0)
    first = await load_secrets(engine, clock, new_id=new_id)
    async with engine.begin() as connection:
        await connection.execute(
            insert(table),
            [
                {"name": SIGNING, "key_id": key_id, "value": value, "created_at_ms": at}
                for key_id, value, at in (("a_new", b"new", 1_000_001), ("old", b"old", 999_999))
            ],
        )
    secrets = await load_secrets(engine, clock, new_id=new_id)
    assert secrets.current_signing_key == "a_new"
    assert secrets.signing_keys == {"old": b"old", **first.signing_keys, "a_new": b"new"}


async def test_secrets_do_not_show(engine: AsyncEngine) -> None:
    secrets = await load_secrets(engine, random_bytes=lambda size: b"s" * size)
    assert "sss" not in repr(secrets)
    assert secrets.current_signing_key in repr(secrets)
