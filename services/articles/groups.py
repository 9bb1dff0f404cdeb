"""Groups of users who share documents, and grants.

Users and operators, with the `gateway` command, create groups and change their members by the same
rules, except that operators need no rights and have no limits. The creator of a group manages it;
once the creator has left, the member who has been in it the longest does. Users are named by their
ids, which are random and shown to nobody but them and the members of their groups: no answer tells
who else has an account. Every user has a private group, 0, which has no row.
"""

import secrets as randomness
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.errors import (
    GROUP_IN_USE,
    MEMBER,
    NO_RIGHT,
    SCHEMA,
    failure,
    no_group,
)
from services.articles.tables import MAX_NAME, articles, grants, groups, members
from services.common.articles import limits
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.storage.database import reading, reading_once, write, writing

# The only grant: to edit documents, where `articles.require_grant` is set.
EDIT_ARTICLES = "articles"

# JavaScript represents integers below 2^53 exactly.
_ID_BITS = 53
# The creator of a group without members.
_NOBODY = ""


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


class Member(NamedTuple):
    """A member of a group, with the time in Unix milliseconds at which the user joined."""

    user_id: str
    added_at_ms: int


class MemberGroup(NamedTuple):
    """A group in lists for its members.

    Attributes:
        id: 1 to 2^53 - 1.
        name: display name.
        creator_id: the member who manages it.
        created_at_ms: Unix milliseconds.
        members: its members, in the order in which they joined.
    """

    id: int
    name: str
    creator_id: str
    created_at_ms: int
    members: Sequence[Member]


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

    async def create(self, name: str, creator_id: str, *, is_operator: bool = True) -> int:
        """Create a group with its creator as member; return its id.

        Args:
            name: name of the group.
            creator_id: the user.
            is_operator: whether an operator creates it, so that the user may have any number.

        Raises:
            GatewayError: 40003, when the name is empty or too long, or the user is in too many
                groups.
        """
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise failure(SCHEMA, "/name", f"must have 1 to {MAX_NAME} printable characters")
        # Zero is the private group.
        group_id = max(1, self._random_bits(_ID_BITS))
        now_ms = self._now_ms()

        async def transact(connection: AsyncConnection) -> None:
            if not is_operator:
                await _check_count(
                    connection,
                    members.c.user_id == creator_id,
                    *(limits.GROUPS_OF_A_USER, "you are in {} groups"),
                )
            await connection.execute(
                insert(groups).values(
                    id=group_id, name=name, creator_id=creator_id, created_at_ms=now_ms
                )
            )
            await _join(connection, group_id, creator_id, now_ms)

        await write(self._engine, transact)
        return group_id

    async def check_manager(self, group_id: int, user_id: str) -> None:
        """Check that a user may add members to a group.

        Raises:
            GatewayError: 40406, there is no such group, or the user is not in it; 40301.
        """
        async with reading(self._engine) as connection:
            await _must_manage(connection, group_id, user_id)

    async def add(self, group_id: int, user_id: str, by_user_id: str | None = None) -> None:
        """Add a user to a group; adding a member again changes nothing.

        Args:
            group_id: the group.
            user_id: a user who exists.
            by_user_id: the user who adds the other; None for an operator.

        Raises:
            GatewayError: 40406, there is no such group, or the caller is not in it; 40301, the
                caller does not manage it; 40003, it has too many members, or the user too many
                groups.
        """

        async def transact(connection: AsyncConnection) -> None:
            await _must_manage(connection, group_id, by_user_id)
            if await _is_member(connection, group_id, user_id):
                return
            if by_user_id is not None:
                in_group, of_user = members.c.group_id == group_id, members.c.user_id == user_id
                await _check_count(connection, in_group, limits.MEMBERS, "the group has {} members")
                await _check_count(
                    connection, of_user, limits.GROUPS_OF_A_USER, "the user is in {} groups"
                )
            await _join(connection, group_id, user_id, self._now_ms())

        try:
            await write(self._engine, transact)
        except IntegrityError:
            return  # another call added the user

    async def remove(self, group_id: int, user_id: str, by_user_id: str | None = None) -> None:
        """Remove a user from a group; the documents that the user created there stay.

        Args:
            group_id: the group.
            user_id: the member.
            by_user_id: the user who removes the member, perhaps the same; None for an operator.

        Raises:
            GatewayError: 40406, there is no such group, or the caller is not in it; 40301, the
                caller may not remove the member; 40409, the user is not a member; 40906, the
                caller is the last member of a group with documents.
        """

        async def transact(connection: AsyncConnection) -> None:
            is_manager = await _manages(connection, group_id, by_user_id)
            if not is_manager and user_id != by_user_id:
                raise failure(NO_RIGHT, "/user", "only the group's creator may remove others")
            removed = await connection.execute(
                delete(members).where(members.c.group_id == group_id, members.c.user_id == user_id)
            )
            if not removed.rowcount:
                raise failure(MEMBER, "/user", "not a member of this group")
            await pass_on_groups(connection, user_id, group_id)
            if by_user_id is not None:
                await _delete_if_empty(connection, group_id)

        await write(self._engine, transact)

    async def list_of(self, user_id: str) -> Sequence[MemberGroup]:
        """Return the groups that a user is in, the oldest first."""
        mine = select(members.c.group_id).where(members.c.user_id == user_id)
        query = (
            select(groups, members.c.user_id, members.c.added_at_ms)
            .join(members, members.c.group_id == groups.c.id)
            .where(groups.c.id.in_(mine))
            .order_by(groups.c.created_at_ms, groups.c.id)
            .order_by(members.c.added_at_ms, members.c.user_id)
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        of_group: dict[int, list[Member]] = defaultdict(list)
        for row in rows:
            of_group[row.id].append(Member(row.user_id, row.added_at_ms))
        by_id = {row.id: row for row in rows}
        return [
            MemberGroup(row.id, row.name, row.creator_id, row.created_at_ms, of_group[row.id])
            for row in by_id.values()
        ]

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


async def pass_on_groups(
    connection: AsyncConnection, user_id: str, group_id: int | None = None
) -> None:
    """Make the members of the longest standing the managers of the groups that a user left.

    Args:
        connection: of the transaction in which the user's memberships were removed.
        user_id: the user.
        group_id: the group that the user left; None for all.
    """
    longest = (
        select(members.c.user_id)
        .where(members.c.group_id == groups.c.id)
        .order_by(members.c.added_at_ms, members.c.user_id)
        .limit(1)
        .scalar_subquery()
    )
    left = [groups.c.creator_id == user_id]
    if group_id is not None:
        left.append(groups.c.id == group_id)
    await connection.execute(
        update(groups).where(*left).values(creator_id=func.coalesce(longest, _NOBODY))
    )


async def _manages(connection: AsyncConnection, group_id: int, user_id: str | None) -> bool:
    """Return whether a user manages a group, as an operator does; lock the group.

    Raises:
        GatewayError: 40406, there is no such group, or the user is not in it.
    """
    query = select(groups.c.creator_id).where(groups.c.id == group_id).with_for_update()
    creator_id = await connection.scalar(query)
    if user_id is None:
        if creator_id is None:
            raise invalid("group", f"group: no group {group_id}; `groups list` shows all groups")
        return True
    if creator_id is None or not await _is_member(connection, group_id, user_id):
        raise no_group()
    return bool(creator_id == user_id)


async def _check_count(
    connection: AsyncConnection, which: ColumnElement[bool], most: int, problem: str
) -> None:
    count = await connection.scalar(select(func.count()).select_from(members).where(which)) or 0
    if count >= most:
        raise failure(SCHEMA, "/group", problem.format(most) + ", the maximum")


async def _must_manage(connection: AsyncConnection, group_id: int, user_id: str | None) -> None:
    if not await _manages(connection, group_id, user_id):
        raise failure(NO_RIGHT, "/group", "only the group's creator may add members")


async def _is_member(connection: AsyncConnection, group_id: int, user_id: str) -> bool:
    query = select(members.c.user_id).where(
        members.c.group_id == group_id, members.c.user_id == user_id
    )
    return await connection.scalar(query) is not None


async def _delete_if_empty(connection: AsyncConnection, group_id: int) -> None:
    """Delete a group without members, unless deleted documents could be restored to it.

    Raises:
        GatewayError: 40906, it has documents.
    """
    if await connection.scalar(select(func.count()).where(members.c.group_id == group_id)):
        return
    in_group = articles.c.group_id == group_id
    live = select(articles.c.id).where(in_group, articles.c.deleted_at_ms.is_(None)).limit(1)
    if await connection.scalar(live) is not None:
        problem = "you are the last member; move the group's documents, or delete them, before"
        raise failure(GROUP_IN_USE, "/group", problem)
    is_used = exists(select(articles.c.id).where(in_group))
    await connection.execute(delete(groups).where(groups.c.id == group_id, ~is_used))


async def _join(connection: AsyncConnection, group_id: int, user_id: str, now_ms: int) -> None:
    await connection.execute(
        insert(members).values(group_id=group_id, user_id=user_id, added_at_ms=now_ms)
    )
