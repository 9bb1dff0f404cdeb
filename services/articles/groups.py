"""Groups of users who share documents, and grants.

Operators create groups and add users with the `gateway` command. Every user has a
private group, 0, which has no row.
"""

import secrets as randomness
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.tables import MAX_NAME, articles, grants, groups, members
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.storage.database import reading_once, writing

# The only grant: to edit documents, where `articles.require_grant` is set.
EDIT_ARTICLES = "articles"

# JavaScript represents integers below 2^53 exactly.
_ID_BITS = 53


class GroupInfo(NamedTuple):
    """A group in lists for operators.

    Attributes:
        id: 1 to 2^53 - 1.
        name: display name.
        creator_id: the user for whom it was created.
        members: number of users in it.
        articles: number of documents in it, without deleted ones.
        created_at_ms: Unix milliseconds.
    """

    id: int
    name: str
    creator_id: str
    members: int
    articles: int
    created_at_ms: int


class GroupRepository:
    """Groups, members and grants in the database.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        random_bits: Callable[[int], int] = randomness.randbits,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._random_bits = random_bits

    async def create(self, name: str, creator_id: str) -> int:
        """Create a group with its creator as member; return its id.

        Raises:
            GatewayError: invalid_request, when the name is empty or too long.
        """
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise invalid("name", f"name: must be 1 to {MAX_NAME} printable characters")
        # Zero is the private group.
        group_id = max(1, self._random_bits(_ID_BITS))
        now_ms = self._now_ms()
        async with writing(self._engine) as connection:
            await connection.execute(
                insert(groups).values(
                    id=group_id, name=name, creator_id=creator_id, created_at_ms=now_ms
                )
            )
            await _join(connection, group_id, creator_id, now_ms)
        return group_id

    async def add(self, group_id: int, user_id: str) -> None:
        """Add a user to a group; adding a member again changes nothing.

        Raises:
            GatewayError: invalid_request, when there is no such group.
        """
        try:
            async with writing(self._engine) as connection:
                await _must_exist(connection, group_id)
                await _join(connection, group_id, user_id, self._now_ms())
        except IntegrityError:
            return

    async def remove(self, group_id: int, user_id: str) -> None:
        """Remove a user from a group.

        Raises:
            GatewayError: invalid_request, when there is no such group, or the user is not in it.
        """
        async with writing(self._engine) as connection:
            await _must_exist(connection, group_id)
            removed = await connection.execute(
                delete(members).where(members.c.group_id == group_id, members.c.user_id == user_id)
            )
        if not removed.rowcount:
            raise invalid("user", "user: not a member of this group")

    async def list_all(self) -> Sequence[GroupInfo]:
        """Return every group, oldest first."""
        of_group = groups.c.id
        member_count = select(func.count()).where(members.c.group_id == of_group).scalar_subquery()
        article_count = (
            select(func.count())
            .where(articles.c.group_id == of_group, articles.c.deleted_at_ms.is_(None))
            .scalar_subquery()
        )
        query = select(
            groups.c.id,
            groups.c.name,
            groups.c.creator_id,
            member_count,
            article_count,
            groups.c.created_at_ms,
        ).order_by(groups.c.created_at_ms, groups.c.id)
        async with reading_once(self._engine) as connection:
            return [GroupInfo(*row) for row in await connection.execute(query)]

    async def give_grant(self, user_id: str, name: str = EDIT_ARTICLES) -> None:
        """Grant a user access; granting it again changes nothing."""
        try:
            async with writing(self._engine) as connection:
                await connection.execute(
                    insert(grants).values(user_id=user_id, name=name, given_at_ms=self._now_ms())
                )
        except IntegrityError:
            return

    async def take_grant(self, user_id: str, name: str = EDIT_ARTICLES) -> None:
        """Remove a grant of a user, if there is one."""
        async with writing(self._engine) as connection:
            await connection.execute(
                delete(grants).where(grants.c.user_id == user_id, grants.c.name == name)
            )

    async def has_grant(self, user_id: str, name: str = EDIT_ARTICLES) -> bool:
        """Return whether a user has a grant."""
        query = select(grants.c.user_id).where(grants.c.user_id == user_id, grants.c.name == name)
        async with reading_once(self._engine) as connection:
            return await connection.scalar(query) is not None

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


async def _must_exist(connection: AsyncConnection, group_id: int) -> None:
    if await connection.scalar(select(groups.c.id).where(groups.c.id == group_id)) is None:
        raise invalid("group", f"group: no group {group_id}; `groups list` shows all groups")


async def _join(connection: AsyncConnection, group_id: int, user_id: str, now_ms: int) -> None:
    await connection.execute(
        insert(members).values(group_id=group_id, user_id=user_id, added_at_ms=now_ms)
    )
