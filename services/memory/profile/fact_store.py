"""Facts about users in the database.

Facts with the same topic and sub-topic supersede one another in the order in which they were last
said, in whatever order they are extracted. A fact cites each turn in which it was said. When all
its turns are withdrawn it is deleted, and the fact that it superseded is current again.

A transaction locks an owner's facts after memories and jobs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.storage.database import insert_into, read
from services.common.storage.key_lists import KeyList
from services.memory.profile.fact_versions import (
    FactVersion,
    find_restated,
    supersession_changes,
)
from services.memory.profile.facts import ExtractedFact, Fact, FactSource
from services.memory.storage.quota import lock_owner
from services.memory.storage.tables import facts, sources

PREFIX = "fact_"

# Maximum number of facts in a profile; if there are more, those that were said last.
MAX_FACTS = 64

# Facts in one SQL statement.
_BATCH = 200

_Key = tuple[str, str, str]
# Built once: each tuple has reference cycles, which only the garbage collector frees.
_KEYS = KeyList((facts.c.owner_id, facts.c.topic, facts.c.sub_topic), 1, "keys")
_VERSIONS = select(facts).where(_KEYS.condition).order_by(facts.c.place)

# The source of facts that were said outside of any memory.
_NO_MEMORY = FactSource("", 0)


class FactStore:
    """Facts about all users.

    Methods that take a connection work in the caller's transaction; every other raises
    `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, new_id: ids.IdGenerator = ids.new_id) -> None:
        self._engine = engine
        self._new_id = new_id

    async def of(self, owner_id: str) -> list[Fact]:
        """Return the current facts about a user by topic and sub-topic; at most `MAX_FACTS`."""
        query = (
            select(facts)
            .where(facts.c.owner_id == owner_id, facts.c.superseded_by.is_(None))
            .order_by(facts.c.updated_at_ms.desc(), facts.c.id.desc())
            .limit(MAX_FACTS)
        )

        async def rows_and_sources(
            connection: AsyncConnection,
        ) -> tuple[Sequence[Row[Any]], Mapping[str, Sequence[FactSource]]]:
            rows = (await connection.execute(query)).all()
            return rows, await _sources_of(connection, [row.id for row in rows])

        rows, cited = await read(self._engine, rows_and_sources)
        current = [
            Fact(
                *(row.topic, row.sub_topic, row.value, tuple(cited[row.id])),
                *(row.updated_at_ms, row.id),
            )
            for row in rows
        ]
        return sorted(current, key=lambda fact: (fact.topic, fact.sub_topic))

    async def put(
        self,
        connection: AsyncConnection,
        owner_id: str,
        extracted: Iterable[ExtractedFact],
        said_in: FactSource | None,
        said_at_ms: int,
    ) -> None:
        """Store the facts extracted from one text of a user.

        Of several facts with the same topic and sub-topic the last is stored. `said_in` is None
        for text outside of any memory.
        """
        newest = {(owner_id, one.topic, one.sub_topic): one.value for one in extracted}
        if not newest:
            return
        await lock_owner(connection, owner_id)
        versions = await _versions(connection, list(newest))
        for key, value in newest.items():
            earlier = versions[key]
            fact_id = find_restated(earlier, value, said_at_ms)
            if fact_id is None:
                fact_id = self._new_id(PREFIX)
                place = earlier[-1].place + 1 if earlier else 0
                version = FactVersion(fact_id, value, said_at_ms, place, superseded_by=fact_id)
                topic = dict(zip(("owner_id", "topic", "sub_topic"), key, strict=True))
                await connection.execute(insert(facts).values(**topic, **version._asdict()))
                earlier.append(version)
            await _cite(connection, fact_id, said_in or _NO_MEMORY, said_at_ms)
        await _update_supersession(connection, list(newest))

    async def correct(
        self, connection: AsyncConnection, owner_id: str, fact_id: str, value: str, now_ms: int
    ) -> str:
        """Make a value that of a current fact, as if the user said it now outside of any memory.

        Return the id of the current fact with its topic, or "" if the user has no such fact.
        """
        await lock_owner(connection, owner_id)
        key = await _current_key(connection, owner_id, fact_id)
        if key is None:
            return ""
        _, topic, sub_topic = key
        fact = ExtractedFact(topic, sub_topic, value)
        await self.put(connection, owner_id, [fact], None, now_ms)
        current = and_(
            *(facts.c.owner_id == owner_id, facts.c.topic == topic),
            *(facts.c.sub_topic == sub_topic, facts.c.superseded_by.is_(None)),
        )
        # A value that restates the one before, in other letters, is written as it is now.
        await connection.execute(update(facts).where(current).values(value=value))
        return str(await connection.scalar(select(facts.c.id).where(current)))

    async def remove(self, connection: AsyncConnection, owner_id: str, fact_id: str) -> bool:
        """Delete a current fact with those that it superseded; return whether there was one."""
        await lock_owner(connection, owner_id)
        key = await _current_key(connection, owner_id, fact_id)
        if key is None:
            return False
        versions = [version.id for version in (await _versions(connection, [key]))[key]]
        for batch in _batches(versions):
            await connection.execute(delete(sources).where(sources.c.fact_id.in_(batch)))
            # Facts refer to others of their topic.
            await connection.execute(delete(facts).where(facts.c.id.in_(batch)))
        return True

    async def withdraw_from(
        self, connection: AsyncConnection, entity_id: str, first_turn: int
    ) -> None:
        """Remove a turn of a memory and all later ones as sources of facts.

        The caller has cancelled the jobs that would extract more from those turns.
        """
        await _withdraw(
            connection, and_(sources.c.entity_id == entity_id, sources.c.turn >= first_turn)
        )

    async def remove_owner(self, connection: AsyncConnection, owner_id: str) -> None:
        """Erase all facts about a user, superseded ones too.

        The caller has cancelled the jobs that would extract more.
        """
        await lock_owner(connection, owner_id)
        theirs = select(facts.c.id).where(facts.c.owner_id == owner_id)
        await connection.execute(delete(sources).where(sources.c.fact_id.in_(theirs)))
        await connection.execute(delete(facts).where(facts.c.owner_id == owner_id))

    async def remove_some(self, connection: AsyncConnection, owner_id: str, at_most: int) -> int:
        """Erase up to `at_most` facts about a user; return their number.

        The caller has cancelled the jobs that would extract more.
        """
        theirs = select(facts.c.id).where(facts.c.owner_id == owner_id).limit(at_most)
        if await connection.scalar(theirs.limit(1)) is None:
            return 0
        await lock_owner(connection, owner_id)
        fact_ids = (await connection.scalars(theirs)).all()
        await connection.execute(delete(sources).where(sources.c.fact_id.in_(fact_ids)))
        await connection.execute(delete(facts).where(facts.c.id.in_(fact_ids)))
        return len(fact_ids)


async def _current_key(connection: AsyncConnection, owner_id: str, fact_id: str) -> _Key | None:
    """Return the key of a current fact of a user, or None."""
    query = select(facts.c.topic, facts.c.sub_topic).where(
        *(facts.c.id == fact_id, facts.c.owner_id == owner_id),
        facts.c.superseded_by.is_(None),
    )
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else (owner_id, row.topic, row.sub_topic)


async def _sources_of(
    connection: AsyncConnection, fact_ids: Sequence[str]
) -> defaultdict[str, list[FactSource]]:
    cited = defaultdict[str, list[FactSource]](list)
    query = select(sources).where(sources.c.fact_id.in_(fact_ids), sources.c.entity_id != "")
    order = sources.c.at_ms, sources.c.entity_id, sources.c.turn
    for row in await connection.execute(query.order_by(*order)):
        cited[row.fact_id].append(FactSource(row.entity_id, row.turn))
    return cited


async def _versions(
    connection: AsyncConnection, keys: Sequence[_Key]
) -> defaultdict[_Key, list[FactVersion]]:
    """Return all facts with these owners, topics and sub-topics, in the order of insertion."""
    versions = defaultdict[_Key, list[FactVersion]](list)
    for batch in _batches(keys):
        for row in await connection.execute(_VERSIONS, _KEYS.values(batch)):
            versions[row.owner_id, row.topic, row.sub_topic].append(
                FactVersion(row.id, row.value, row.updated_at_ms, row.place, row.superseded_by)
            )
    return versions


async def _cite(
    connection: AsyncConnection, fact_id: str, said_in: FactSource, said_at_ms: int
) -> None:
    citation = insert_into(connection, sources).values(
        fact_id=fact_id, entity_id=said_in.entity_id, turn=said_in.turn, at_ms=said_at_ms
    )
    # Outside of memories one row with the latest time covers all statements of a fact.
    upsert = citation.on_conflict_do_update(
        index_elements=[sources.c.fact_id, sources.c.entity_id, sources.c.turn],
        set_={"at_ms": said_at_ms},
        where=sources.c.at_ms < said_at_ms,
    )
    await connection.execute(upsert)
    await connection.execute(
        update(facts)
        .where(facts.c.id == fact_id, facts.c.updated_at_ms < said_at_ms)
        .values(updated_at_ms=said_at_ms)
    )


async def _withdraw(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    """Delete sources, and the facts that have none left."""
    touched = select(facts).where(facts.c.id.in_(select(sources.c.fact_id).where(which)))
    owner_id = await connection.scalar(touched.with_only_columns(facts.c.owner_id).limit(1))
    if owner_id is None:
        return
    await lock_owner(connection, owner_id)
    rows = (await connection.execute(touched)).all()
    await connection.execute(delete(sources).where(which))
    for batch in _batches([row.id for row in rows]):
        latest = select(sources.c.fact_id, func.max(sources.c.at_ms)).group_by(sources.c.fact_id)
        last_said: dict[str, int] = {
            fact_id: at_ms
            for fact_id, at_ms in await connection.execute(
                latest.where(sources.c.fact_id.in_(batch))
            )
        }
        unsourced = [fact_id for fact_id in batch if fact_id not in last_said]
        await connection.execute(delete(facts).where(facts.c.id.in_(unsourced)))
        for fact_id, at_ms in last_said.items():
            await connection.execute(
                update(facts).where(facts.c.id == fact_id).values(updated_at_ms=at_ms)
            )
    await _update_supersession(
        connection, list({(row.owner_id, row.topic, row.sub_topic) for row in rows})
    )


async def _update_supersession(connection: AsyncConnection, keys: Sequence[_Key]) -> None:
    """Mark each fact as superseded by the next."""
    for versions in (await _versions(connection, keys)).values():
        for fact_id, superseded_by in supersession_changes(versions):
            await connection.execute(
                update(facts).where(facts.c.id == fact_id).values(superseded_by=superseded_by)
            )


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[begin : begin + _BATCH] for begin in range(0, len(values), _BATCH))
