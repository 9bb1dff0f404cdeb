"""Stored providers in the database, and the keys that encrypt theirs."""

import base64

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.stored_providers_pb2 import (
    STORED_PROVIDER_STATE_ACTIVE,
    STORED_PROVIDER_STATE_LOCKED,
)
from services.accounts.providers.repository import NewProvider, StoredProviderRepository
from services.accounts.providers.tables import stored_providers
from services.common.settings import parse
from services.common.storage.database import reading_once
from tests.manual_clock import ManualClock

FIRST, SECOND, THIRD = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))


def repository(engine: AsyncEngine, clock: ManualClock, keys: str) -> StoredProviderRepository:
    settings = parse({"stored_providers": {"encryption_keys": keys}}, "the test")
    return StoredProviderRepository(engine, clock, settings, {})


async def test_encryption_keys_are_replaced(engine: AsyncEngine, clock: ManualClock) -> None:
    acme = NewProvider("acme", "openai", "https://llm.example.com/v1", "sk-acme")
    await repository(engine, clock, FIRST).set(acme)
    for keys, is_usable in (
        (f"{FIRST}\n{SECOND}", True),
        (THIRD, False),
        ("", False),
        (f"{SECOND} {FIRST}", True),
        # The row above has encrypted the provider's key anew.
        (SECOND, True),
        (FIRST, False),
    ):
        stored = repository(engine, clock, keys)
        usable = {name: one.key({}) for name, one in (await stored.usable()).items()}
        assert (keys, usable) == (keys, {"acme": "sk-acme"} if is_usable else {})
        (listed,) = await stored.list_all()
        locked, active = STORED_PROVIDER_STATE_LOCKED, STORED_PROVIDER_STATE_ACTIVE
        assert (keys, listed.state) == (keys, active if is_usable else locked)


async def test_a_change_keeps_what_it_does_not_name(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    stored = repository(engine, clock, FIRST)
    made = await stored.set(NewProvider("groq", api_key="gsk_1"))
    assert (made.kind, made.base_url) == ("openai", "https://api.groq.com/openai/v1")
    clock.now_s += 60
    kept = await stored.set(NewProvider("groq", base_url=f"{made.base_url}/"))
    assert kept == made
    rotated = await stored.set(NewProvider("groq", api_key="gsk_2"))
    assert rotated.key_set_at_ms - made.key_set_at_ms == 60_000
    assert rotated.created_at_ms == made.created_at_ms
    assert (await stored.usable())["groq"].key({}) == "gsk_2"
    async with reading_once(engine) as connection:
        (sealed,) = await connection.scalars(select(stored_providers.c.sealed_key))
    assert b"gsk" not in sealed and len(sealed) == 12 + len("gsk_2") + 16
