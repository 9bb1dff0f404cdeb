"""Gateways that share a database, and callers with limits."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.repository import LimitRepository
from services.accounts.limits.rules import Limits, SubjectKind
from services.accounts.repository import AccountRepository
from services.common.database import open_engine
from services.common.ids import Source
from services.common.settings import Storage
from tests.gateway_in_process import Gateway, running_gateway

HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"model": "sandbox/echo", "messages": HELLO}
MESSAGE = {**CHAT, "max_tokens": 50}
MINUTE_S = 1_700_000_040.0  # the beginning of a minute


@dataclass
class Clock:
    """A clock that stands still, 20 s before the end of a minute, until it is told to go on."""

    now_s: float = MINUTE_S + 40

    def now(self) -> float:
        return self.now_s


@dataclass(frozen=True)
class LimitedGateways:
    """Gateways over one database.

    Attributes:
        gateways: the gateways.
        clock: their clock.
        engine: the database.
    """

    gateways: Sequence[Gateway]
    clock: Clock
    engine: AsyncEngine
    _names: list[str] = field(default_factory=list)

    async def caller(
        self, kind: SubjectKind, limits: Limits, *, team: str | None = None
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
        await LimitRepository(self.engine, Source()).set(kind, ids[kind], limits)
        return {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def limited_gateways(
    folder: Path, storage: Storage, count: int = 1, **arguments: Any
) -> AsyncIterator[LimitedGateways]:
    """Run so many gateways over one database; `arguments` are those of `running_gateway`."""
    clock = Clock()
    places = {"data_dir": str(storage.data_dir), "database_url": storage.database_url}
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(
                running_gateway(folder, source=Source(now=clock.now), storage=places, **arguments)
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
