"""What is known about each user, in the database.

Facts with one topic and sub-topic supersede one another in the order in which they were
last said, in whatever order they are found. A fact cites each turn that says it; one
whose turns are all withdrawn falls, and what it superseded counts again.

In a transaction an owner's facts come after memories and jobs.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.database import insert_into, reading
from services.common.ids import Source as Ids
from services.memory.profile.fact_versions import FactVersion, find_restated, supersession_changes
from services.memory.profile.facts import ExtractedFact, Fact, FactSource
from services.memory.profile.tables import facts, sources
from services.memory.storage.tables import owners

PREFIX = "fact_"

# Facts that count for one user; of more, those count that were said last.
MAX_FACTS = 64

# Facts that one statement names.
_AT_ONCE = 200

_Key = tuple[str, str, str]


# Outside of any memory.
_NOWHERE = FactSource("", 0)


class FactStore:
    """What is known about all users.

    Methods that take a connection work in the caller's transaction; every other raises
    `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, ids: Ids) -> None:
        self._engine = engine
        self._ids = ids

    async def of(self, owner_id: str) -> list[Fact]:
        """Return what is known about a user, by topic and sub-topic; at most `MOST` facts."""
        query = (
            select(facts)
            .where(facts.c.owner_id == owner_id, facts.c.superseded_by.is_(None))
            .order_by(facts.c.updated_at_ms.desc(), facts.c.id.desc())
            .limit(MAX_FACTS)
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
            cited = await _sources_of(connection, [row.id for row in rows])
        known = [
            Fact(row.topic, row.sub_topic, row.value, tuple(cited[row.id]), row.updated_at_ms)
            for row in rows
        ]
        return sorted(known, key=lambda fact: (fact.topic, fact.sub_topic))

    async def put(
        self,
        connection: AsyncConnection,
        owner_id: str,
        found: Iterable[ExtractedFact],
        said_in: FactSource | None,
        said_at_ms: int,
    ) -> None:
        """Take note of what was found in one text of a user's.

        Args:
            connection: the caller's transaction.
            owner_id: the user.
            found: what the text says; of several on one sub-topic the last counts.
            said_in: the turn, or None outside of any memory.
            said_at_ms: Unix milliseconds.
        """
        newest = {(owner_id, one.topic, one.sub_topic): one.value for one in found}
        if not newest:
            return
        await _lock_owner(connection, owner_id)
        chains = await _versions(connection, list(newest))
        for key, value in newest.items():
            chain = chains[key]
            fact_id = find_restated(chain, value, said_at_ms)
            if fact_id is None:
                fact_id = self._ids.new_id(PREFIX)
                place = chain[-1].place + 1 if chain else 0
                link = FactVersion(fact_id, value, said_at_ms, place, superseded_by=fact_id)
                await _insert(connection, key, link)
                chain.append(link)
            await _cite(connection, fact_id, said_in or _NOWHERE, said_at_ms)
        await _update_supersession(connection, list(newest))

    async def withdraw_from(
        self, connection: AsyncConnection, entity_id: str, first_turn: int
    ) -> None:
        """Withdraw what a turn of a memory says, and what later ones do.

        What is still to be found in them has been cancelled before.
        """
        await _withdraw(
            connection, and_(sources.c.entity_id == entity_id, sources.c.turn >= first_turn)
        )

    async def remove_memory(self, connection: AsyncConnection, entity_id: str) -> None:
        """Withdraw all that a memory says."""
        await _withdraw(connection, sources.c.entity_id == entity_id)

    async def remove_owner(self, connection: AsyncConnection, owner_id: str) -> None:
        """Erase all that is known about a user, superseded facts too.

        What is still to be found has been cancelled before.
        """
        await _lock_owner(connection, owner_id)
        theirs = select(facts.c.id).where(facts.c.owner_id == owner_id)
        await connection.execute(delete(sources).where(sources.c.fact_id.in_(theirs)))
        await connection.execute(delete(facts).where(facts.c.owner_id == owner_id))


async def _lock_owner(connection: AsyncConnection, owner_id: str) -> None:
    """Lock a user's facts until the transaction's end."""
    none = insert_into(connection, owners).values(owner_id=owner_id, memories=0)
    await connection.execute(none.on_conflict_do_nothing())
    await connection.execute(
        select(owners.c.owner_id)
        .where(owners.c.owner_id == owner_id)
        .with_for_update(key_share=True)
    )


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
    """Return all facts with these owners, topics and sub-topics, in the order they were made."""
    chains = defaultdict[_Key, list[FactVersion]](list)
    key = tuple_(facts.c.owner_id, facts.c.topic, facts.c.sub_topic)
    for some in _batches(keys):
        query = select(facts).where(key.in_(some)).order_by(facts.c.place)
        for row in await connection.execute(query):
            chains[row.owner_id, row.topic, row.sub_topic].append(
                FactVersion(row.id, row.value, row.updated_at_ms, row.place, row.superseded_by)
            )
    return chains


async def _insert(connection: AsyncConnection, key: _Key, link: FactVersion) -> None:
    owner_id, topic, sub_topic = key
    await connection.execute(
        insert(facts).values(
            id=link.id,
            owner_id=owner_id,
            topic=topic,
            sub_topic=sub_topic,
            value=link.value,
            updated_at_ms=link.said_at_ms,
            place=link.place,
            superseded_by=link.superseded_by,
        )
    )


async def _cite(
    connection: AsyncConnection, fact_id: str, said_in: FactSource, said_at_ms: int
) -> None:
    cite = insert_into(connection, sources).values(
        fact_id=fact_id, entity_id=said_in.entity_id, turn=said_in.turn, at_ms=said_at_ms
    )
    # Outside of memories one row stands for all the times.
    again = cite.on_conflict_do_update(
        index_elements=[sources.c.fact_id, sources.c.entity_id, sources.c.turn],
        set_={"at_ms": said_at_ms},
        where=sources.c.at_ms < said_at_ms,
    )
    await connection.execute(again)
    await connection.execute(
        update(facts)
        .where(facts.c.id == fact_id, facts.c.updated_at_ms < said_at_ms)
        .values(updated_at_ms=said_at_ms)
    )


async def _withdraw(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    touched = select(facts).where(facts.c.id.in_(select(sources.c.fact_id).where(which)))
    owner_id = await connection.scalar(touched.with_only_columns(facts.c.owner_id).limit(1))
    if owner_id is None:
        return
    await _lock_owner(connection, owner_id)
    rows = (await connection.execute(touched)).all()
    await connection.execute(delete(sources).where(which))
    for some in _batches([row.id for row in rows]):
        left = select(sources.c.fact_id, func.max(sources.c.at_ms)).group_by(sources.c.fact_id)
        said: dict[str, int] = {
            fact_id: at_ms
            for fact_id, at_ms in await connection.execute(left.where(sources.c.fact_id.in_(some)))
        }
        fallen = [fact_id for fact_id in some if fact_id not in said]
        await connection.execute(delete(facts).where(facts.c.id.in_(fallen)))
        for fact_id, at_ms in said.items():
            await connection.execute(
                update(facts).where(facts.c.id == fact_id).values(updated_at_ms=at_ms)
            )
    await _update_supersession(
        connection, list({(row.owner_id, row.topic, row.sub_topic) for row in rows})
    )


async def _update_supersession(connection: AsyncConnection, keys: Sequence[_Key]) -> None:
    """Mark each fact as superseded by the next."""
    chains = await _versions(connection, keys)
    for chain in chains.values():
        for fact_id, superseded_by in supersession_changes(chain):
            await connection.execute(
                update(facts).where(facts.c.id == fact_id).values(superseded_by=superseded_by)
            )


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE))
