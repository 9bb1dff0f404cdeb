"""Repository of documents, without their content, and the access rights to them.

Only its creator may read and edit a document in the private group. A document in another group may
be read and edited by every member, or, while its permission is private, only by its creator. The
creators of the document and of the group may delete it, if they may read it. A deleted document is
only marked: it can be restored until the sweeper purges it.
"""

import secrets as randomness
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, and_, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.articles.v1 import articles_pb2
from services.articles.errors import (
    FIELDS,
    NO_RIGHT,
    SCHEMA,
    document_deleted,
    failure,
    no_document,
    no_group,
)
from services.articles.retention import PURGING_MS
from services.articles.tables import (
    GROUP_ONLY,
    MAX_NAME,
    PRIVATE,
    articles,
    groups,
    members,
)
from services.articles.usage import DOCUMENT_BYTES, OwnerUsage, lock
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.settings import Articles
from services.common.storage.database import reading, write

PRIVATE_GROUP = 0
PRIVATE_GROUP_NAME = "Private"
UNTITLED = "Untitled"

# An id is the time in milliseconds, followed by this many random bits, so that ids do not reveal
# the number of documents. After 2039 ids exceed 2^63; ids are text, and their column has room.
_RANDOM_BITS = 22
_MAX_ID_LENGTH = 20


# Called in the transaction that creates a document, with its id.
FillDocument = Callable[[AsyncConnection, str], Awaitable[None]]


class AccessRights(NamedTuple):
    """The rights of a user to a document, and the facts that they are derived from.

    Attributes:
        creator_id: id of the document's creator.
        is_creator: whether the user is the creator.
        is_member: whether the user is in the document's group; False for the private group.
        is_group_creator: whether the user created that group.
        in_group: whether the document is in a group other than the private one.
        permission: private or group-only.
    """

    creator_id: str
    is_creator: bool
    is_member: bool
    is_group_creator: bool
    in_group: bool
    permission: str

    @property
    def may_read(self) -> bool:
        """Whether the user may read the document, and edit it."""
        if self.in_group and self.permission == GROUP_ONLY:
            return self.is_member
        return self.is_creator

    @property
    def may_delete(self) -> bool:
        """Whether the user, who may read the document, may delete it."""
        return self.is_creator or self.is_group_creator


def access_rights_of(row: Row[Any], user_id: str) -> AccessRights:
    """Return a user's rights from a row of `with_access_columns`."""
    return AccessRights(
        creator_id=row.creator_id,
        is_creator=row.creator_id == user_id,
        is_member=row.member_id is not None,
        is_group_creator=row.group_creator_id == user_id,
        in_group=row.group_id is not None,
        permission=row.permission,
    )


def with_access_columns(query: Select[Any], user_id: ColumnElement[str] | str) -> Select[Any]:
    """Return a query on `articles` with the columns that `access_rights_of` reads."""
    of_user = and_(members.c.group_id == articles.c.group_id, members.c.user_id == user_id)
    return (
        query.add_columns(
            articles.c.creator_id,
            articles.c.group_id,
            articles.c.permission,
            groups.c.creator_id.label("group_creator_id"),
            members.c.user_id.label("member_id"),
        )
        .outerjoin(groups, groups.c.id == articles.c.group_id)
        .outerjoin(members, of_user)
    )


def is_id(text: str) -> bool:
    """Return whether a text has the form of a document id."""
    return len(text) <= _MAX_ID_LENGTH and text.isascii() and text.isdecimal()


class ArticleRepository:
    """Documents in the database, without their content.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        random_bits: Callable[[int], int] = randomness.randbits,
        owner_usage: OwnerUsage | None = None,
    ) -> None:
        self._usage = owner_usage or OwnerUsage(Articles())
        self._engine = engine
        self._clock = clock or Clock()
        self._random_bits = random_bits

    async def create(
        self,
        user_id: str,
        plan: str,
        group_id: int,
        name: str,
        fill: FillDocument | None = None,
    ) -> articles_pb2.Article:
        """Create a document.

        Args:
            user_id: its creator.
            plan: name of the creator's plan.
            group_id: its group; 0 is the private one.
            name: its name; "" for "Untitled".
            fill: stores its content, in the same transaction; without it, the document is empty.

        Raises:
            GatewayError: 40003, the name is invalid; 40303, the quota of the plan is reached;
                40406, the user is not in the group.
        """
        _check_name(name)
        now_ms = self._now_ms()
        row = {
            "id": str(now_ms << _RANDOM_BITS | self._random_bits(_RANDOM_BITS)),
            "group_id": group_id or None,
            "creator_id": user_id,
            "name": name or UNTITLED,
            "permission": GROUP_ONLY,
            "created_at_ms": now_ms,
            "size_bytes": DOCUMENT_BYTES,
            "charged_bytes": 0,
        }

        async def insert_document(connection: AsyncConnection) -> articles_pb2.Article:
            if group_id != PRIVATE_GROUP:
                await _must_be_member(connection, group_id, user_id)
            await self._usage.add_document(connection, user_id, plan)
            inserted = await connection.execute(insert(articles).values(row).returning(articles))
            article = _to_article(inserted.one())
            if fill is not None:
                await fill(connection, article.id)
            return article

        return await write(self._engine, insert_document)

    async def delete(self, user_id: str, article_id: str) -> None:
        """Mark a document as deleted.

        Raises:
            GatewayError: 40402; 40301, the caller may read it but not delete it.
        """

        async def transact(connection: AsyncConnection) -> None:
            rights = await find(connection, user_id, article_id)
            if not rights.may_delete:
                raise failure(
                    NO_RIGHT, "/docId", "only the document's creator or its group may delete it"
                )
            await lock(connection, rights.creator_id)
            deleted = await connection.execute(
                update(articles)
                .where(articles.c.id == article_id, articles.c.deleted_at_ms.is_(None))
                .values(deleted_at_ms=self._now_ms())
                .returning(articles.c.size_bytes)
            )
            size = deleted.scalar_one_or_none()
            if size is None:
                raise no_document()  # another call was first
            await self._usage.move(connection, rights.creator_id, size, deleted=True)

        await write(self._engine, transact)

    async def restore(self, article_id: str) -> None:
        """Restore a deleted document, even beyond its owner's quota.

        Raises:
            GatewayError: invalid_request, when no deleted document has that id.
        """
        owner = select(articles.c.creator_id).where(articles.c.id == article_id)

        async def transact(connection: AsyncConnection) -> None:
            owner_id = await connection.scalar(owner)
            if owner_id is not None:
                await lock(connection, owner_id)
            restored = await connection.execute(
                update(articles)
                .where(articles.c.id == article_id, articles.c.deleted_at_ms > PURGING_MS)
                .values(deleted_at_ms=None)
                .returning(articles.c.size_bytes)
            )
            size = restored.scalar_one_or_none()
            if owner_id is None or size is None:
                raise invalid("document", "document: no deleted document has this id")
            await self._usage.move(connection, owner_id, size, deleted=False)

        await write(self._engine, transact)

    async def rename(self, user_id: str, article_id: str, name: str) -> articles_pb2.Article:
        """Rename a document.

        Raises:
            GatewayError: 40003, the name is invalid; 40402.
        """
        if not name:
            raise failure(SCHEMA, "/name", "must not be empty")
        _check_name(name)

        async def transact(connection: AsyncConnection) -> articles_pb2.Article:
            await find(connection, user_id, article_id)
            return await _changed(connection, article_id, {"name": name})

        return await write(self._engine, transact)

    async def share(
        self,
        article_id: str,
        permission: str | None = None,
        group_id: int | None = None,
        by_user_id: str | None = None,
    ) -> articles_pb2.Article:
        """Change who may read and edit a document, or move it to another group.

        Args:
            article_id: the document.
            permission: private or group-only; None to keep it.
            group_id: the group; 0 is the creator's private one; None to keep it.
            by_user_id: the user who shares it; None for an operator.

        Raises:
            GatewayError: 40004, neither is present; 40402; 40301, the user is not its creator;
                40406, there is no such group, or the user is not in it.
        """
        changes: dict[str, Any] = {}
        if permission is not None:
            changes["permission"] = permission
        if group_id is not None:
            changes["group_id"] = group_id or None
        if not changes:
            raise failure(FIELDS, "", "at least one of permission and group is required")

        async def transact(connection: AsyncConnection) -> articles_pb2.Article:
            if by_user_id is not None:
                rights = await find(connection, by_user_id, article_id)
                if not rights.is_creator:
                    raise failure(NO_RIGHT, "/docId", "only the document's creator may share it")
                if group_id:
                    await _must_be_member(connection, group_id, by_user_id)
            return await _changed(connection, article_id, changes)

        return await write(self._engine, transact)

    async def list_groups(self, user_id: str) -> list[articles_pb2.ArticleGroup]:
        """Return a user's groups, the private one first, with the documents they may read."""
        mine = select(groups).join(members).where(members.c.user_id == user_id)
        theirs = or_(articles.c.creator_id == user_id, articles.c.group_id.in_(_joined(user_id)))
        query = (
            with_access_columns(
                select(articles.c.id, articles.c.name, articles.c.created_at_ms).select_from(
                    articles
                ),
                user_id,
            )
            .where(theirs, articles.c.deleted_at_ms.is_(None))
            .order_by(articles.c.created_at_ms.desc(), articles.c.id.desc())
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
            group_rows = (
                await connection.execute(mine.order_by(groups.c.created_at_ms, groups.c.id))
            ).all()
        in_group: dict[int, list[articles_pb2.Article]] = defaultdict(list)
        for row in rows:
            if access_rights_of(row, user_id).may_read:
                in_group[row.group_id or PRIVATE_GROUP].append(_to_article(row))
        private = articles_pb2.ArticleGroup(
            group_id=PRIVATE_GROUP,
            name=PRIVATE_GROUP_NAME,
            is_creator=True,
            articles=in_group[PRIVATE_GROUP],
        )
        return [private] + [
            articles_pb2.ArticleGroup(
                group_id=group.id,
                name=group.name,
                is_creator=group.creator_id == user_id,
                articles=in_group[group.id],
                created_at=group.created_at_ms // 1000,
            )
            for group in group_rows
        ]

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


async def find(
    connection: AsyncConnection, user_id: str, article_id: str, pointer: str = "/docId"
) -> AccessRights:
    """Return a user's rights to a document that exists and that they may read.

    Raises:
        GatewayError: 40402.
    """
    if is_id(article_id):
        query = with_access_columns(select(articles.c.id).select_from(articles), user_id)
        rows = await connection.execute(
            query.where(articles.c.id == article_id, articles.c.deleted_at_ms.is_(None))
        )
        if row := rows.one_or_none():
            rights = access_rights_of(row, user_id)
            if rights.may_read:
                return rights
    raise no_document(pointer)


async def lock_document(connection: AsyncConnection, article_id: str) -> None:
    """Lock a document, so that concurrent calls do not exceed its limits together.

    Edits are not kept waiting.

    Raises:
        GatewayError: 41002.
    """
    live = (articles.c.id == article_id, articles.c.deleted_at_ms.is_(None))
    query = select(articles.c.id).where(*live).with_for_update(key_share=True)
    if await connection.scalar(query) is None:
        raise document_deleted()


async def _changed(
    connection: AsyncConnection, article_id: str, changes: dict[str, Any]
) -> articles_pb2.Article:
    changed = await connection.execute(
        update(articles)
        .where(articles.c.id == article_id, articles.c.deleted_at_ms.is_(None))
        .values(changes)
        .returning(articles)
    )
    row = changed.one_or_none()
    if row is None:
        raise no_document()
    return _to_article(row)


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME or "\0" in name:
        raise failure(SCHEMA, "/name", f"must have at most {MAX_NAME} characters, without NUL")


def _joined(user_id: str) -> Select[Any]:
    return select(members.c.group_id).where(members.c.user_id == user_id)


async def _must_be_member(connection: AsyncConnection, group_id: int, user_id: str) -> None:
    query = _joined(user_id).where(members.c.group_id == group_id)
    if await connection.scalar(query) is None:
        raise no_group()


def _permission(stored: str) -> articles_pb2.Permission.ValueType:
    permissions = {
        PRIVATE: articles_pb2.PERMISSION_PRIVATE,
        GROUP_ONLY: articles_pb2.PERMISSION_GROUP_ONLY,
    }
    return permissions[stored]


def _to_article(row: Row[Any]) -> articles_pb2.Article:
    return articles_pb2.Article(
        id=row.id,
        name=row.name,
        group_id=row.group_id or PRIVATE_GROUP,
        may_edit=True,  # read access includes write access
        permission=_permission(row.permission),
        created_at=row.created_at_ms // 1000,
    )
