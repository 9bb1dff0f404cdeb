"""Administration of model groups: named lists of models, which limits can allow."""

from collections.abc import Sequence

import orjson
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import COMMAND_LINE, Actor, Record, Subject, record
from services.accounts.limits.rules import check_patterns
from services.accounts.limits.tables import limits
from services.accounts.limits.tables import model_groups as table
from services.accounts.names import check_name
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, conflict, invalid
from services.common.storage.database import insert_into, reading_once, writing_alone

MAX_GROUPS = 200


class ModelGroupAdministration:
    """Administration of model groups in the database.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._new_id = new_id

    async def list_all(self) -> Sequence[tuple[str, Sequence[str]]]:
        """Return the name and the models of each group, by name."""
        query = select(table).order_by(table.c.name)
        async with reading_once(self._engine) as connection:
            return [(row.name, orjson.loads(row.models)) for row in await connection.execute(query)]

    async def set(self, name: str, models: Sequence[str], actor: Actor = COMMAND_LINE) -> None:
        """Create or replace a group.

        Raises:
            GatewayError: invalid_request, when a name is invalid, or there are too many groups.
        """
        check_name("name", name)
        check_patterns("models", models)
        async with writing_alone(self._engine) as connection:
            before = await _models_of(connection, name)
            if before is None:
                count = await connection.scalar(select(func.count()).select_from(table))
                if count is not None and count >= MAX_GROUPS:
                    raise invalid("name", f"name: there may be at most {MAX_GROUPS:,} groups")
            values = {
                "models": orjson.dumps(list(models)).decode(),
                "updated_at_ms": self._clock.now_ms(),
            }
            inserted = insert_into(connection, table).values(name=name, **values)
            await connection.execute(
                inserted.on_conflict_do_update(index_elements=["name"], set_=values)
            )
            await self._record(connection, actor, "set", name, before, models)

    async def delete(self, name: str, actor: Actor = COMMAND_LINE) -> None:
        """Delete a group.

        Raises:
            GatewayError: not_found; conflict, when limits name the group.
        """
        async with writing_alone(self._engine) as connection:
            before = await _models_of(connection, name)
            if before is None:
                raise GatewayError(
                    errors_pb2.REASON_NOT_FOUND, "name: no such model group", param="name"
                )
            is_named = limits.c.allowed_model_groups.contains(f'"{name}"', autoescape=True)
            if users := await connection.scalar(select(func.count()).where(is_named)):
                raise conflict(
                    "name", f"name: limits name the group ({users:,}); change or clear them first"
                )
            await connection.execute(delete(table).where(table.c.name == name))
            await self._record(connection, actor, "delete", name, before, None)

    async def _record(
        self,
        connection: AsyncConnection,
        actor: Actor,
        action: str,
        name: str,
        before: Sequence[str] | None,
        after: Sequence[str] | None,
    ) -> None:
        await record(
            connection,
            self._clock,
            self._new_id,
            actor,
            f"model_group.{action}",
            Subject("model_group", name),
            before=_to_record(before),
            after=_to_record(after),
        )


async def check_groups(connection: AsyncConnection, names: Sequence[str]) -> None:
    """Check that groups exist.

    Raises:
        GatewayError: invalid_request, naming the first that does not.
    """
    if not names:
        return
    existing = set(await connection.scalars(select(table.c.name).where(table.c.name.in_(names))))
    for index, name in enumerate(names):
        if name not in existing:
            path = f"allowed_model_groups[{index}]"
            raise invalid(path, f"{path}: no model group {name!r}; create it first")


async def _models_of(connection: AsyncConnection, name: str) -> Sequence[str] | None:
    """Return the models of a group; None if there is no such group."""
    models = await connection.scalar(select(table.c.models).where(table.c.name == name))
    return None if models is None else orjson.loads(models)


def _to_record(models: Sequence[str] | None) -> Record | None:
    return None if models is None else {"models": list(models)}
