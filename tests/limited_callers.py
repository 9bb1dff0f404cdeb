"""Gateways that share a database, and callers with limits."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.gateway_in_process import Gateway, running_gateway
from tests.manual_clock import ManualClock

HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "sandbox/echo", "messages": HELLO}
MESSAGE = {**CHAT, "max_tokens": 50}
VERSION = {"compat-version": "2023-06-01"}
MINUTE_S = 1_700_000_040.0  # the beginning of a minute


@dataclass
@dataclass(frozen=True)
class LimitedGateways:
    """Gateways over one database.

    Attributes:
        gateways: the gateways.
        clock: their clock.
        engine: the database.
    """

    gateways: Sequence[Gateway]
    clock: ManualClock
    engine: AsyncEngine
    _names: list[str] = field(default_factory=list)

    async def caller(
        self, kind: SubjectKind, limits: UsageLimits, *, team: str | None = None
    ) -> dict[str, str]:
        """Return the headers of a new caller, whose key, user or team has limits."""
        self._names.append(f"caller{len(self._names)}")
        accounts = AccountRepository(self.engine)
        key = await accounts.create_key(self._names[-1], team or f"team_of_{self._names[-1]}")
        owner = await accounts.identify(key)
        ids = {
            SubjectKind.KEY: owner.key_id,
            SubjectKind.USER: owner.user_id,
            SubjectKind.TEAM: owner.team_id,
        }
        await LimitRepository(self.engine, Clock()).set(kind, ids[kind], limits)
        return {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def limited_gateways(
    folder: Path, storage: Storage, count: int = 1, **arguments: Any
) -> AsyncIterator[LimitedGateways]:
    """Run so many gateways over one database; `arguments` are those of `running_gateway`."""
    clock = ManualClock(MINUTE_S + 40)  # 20 s before the end of a minute
    places = {"data_dir": str(storage.data_dir), "database_url": storage.database_url}
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(
                running_gateway(folder, clock=Clock(now=clock.now), storage=places, **arguments)
            )
            for _ in range(count)
        ]
        engine = open_engine(storage)
        stack.push_async_callback(engine.dispose)
        yield LimitedGateways(gateways, clock, engine)


async def post(
    gateway: Gateway, path: str, body: Any, headers: dict[str, str]
) -> tuple[int, bytes, Any]:
    """Return the status, the body and the headers of an answer."""
    async with gateway.http.post(gateway.url + path, json=body, headers=headers) as answer:
        return answer.status, await answer.read(), answer.headers


async def ask(
    limited: LimitedGateways, path: str, body: Any, caller: dict[str, str]
) -> tuple[int, Any, Any]:
    """Return the status of an answer, its error if it is one, and its headers."""
    status, data, headers = await post(limited.gateways[0], path, body, {**VERSION, **caller})
    return status, None if status == 200 else json.loads(data)["error"], headers
