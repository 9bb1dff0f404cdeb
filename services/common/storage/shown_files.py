"""The files that documents show: the article service writes them, the file service keeps them."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    String,
    Table,
    delete,
    exists,
    insert,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.storage.database import insert_into, metadata

# Each file that the blocks of a document show. The rows of a deleted document stay until it is
# purged, as it can be restored.
shown_files = Table(
    "article_files",
    metadata,
    Column("article_id", String(20), primary_key=True),
    Column("file_id", String(64), primary_key=True),
    Index("ix_article_files_file_id", "file_id"),
)

# Each file that a document would show once a pending suggestion is accepted. The rows go with it.
suggested_files = Table(
    "article_suggested_files",
    metadata,
    Column(
        "suggestion_id",
        String(64),
        ForeignKey("article_suggestions.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("file_id", String(64), primary_key=True),
    Index("ix_article_suggested_files_file_id", "file_id"),
)


class ShownFile(NamedTuple):
    """A file that a document shows."""

    article_id: str
    file_id: str


def is_shown(file_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the SQL condition that a document or a suggestion shows the file of a row."""
    return or_(
        *(
            exists(select(table.c.file_id).where(table.c.file_id == file_id))
            for table in (shown_files, suggested_files)
        )
    )


def is_in_document(file_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the SQL condition that a document shows the file of a row."""
    return exists(select(shown_files.c.file_id).where(shown_files.c.file_id == file_id))


async def add_shown_files(connection: AsyncConnection, shown: Collection[ShownFile]) -> None:
    """Store that documents show files, within the caller's transaction."""
    # The same order everywhere, so that two transactions never deadlock.
    rows = [one._asdict() for one in sorted(shown)]
    await connection.execute(insert_into(connection, shown_files).on_conflict_do_nothing(), rows)


async def add_suggested_files(
    connection: AsyncConnection, suggestion_id: str, file_ids: Collection[str]
) -> None:
    """Store that a suggestion shows files, within the caller's transaction."""
    rows = [{"suggestion_id": suggestion_id, "file_id": file_id} for file_id in sorted(file_ids)]
    if rows:
        await connection.execute(insert(suggested_files), rows)


async def remove_shown_files(connection: AsyncConnection, hidden: Collection[ShownFile]) -> None:
    """Store that documents no longer show files, within the caller's transaction."""
    for article_id, file_id in sorted(hidden):
        await connection.execute(
            delete(shown_files).where(
                shown_files.c.article_id == article_id, shown_files.c.file_id == file_id
            )
        )


async def files_of(connection: AsyncConnection, article_id: str) -> Sequence[str]:
    """Return the ids of the files that a document shows."""
    query = select(shown_files.c.file_id).where(shown_files.c.article_id == article_id)
    return (await connection.scalars(query)).all()


async def remove_files_of(connection: AsyncConnection, article_id: str) -> None:
    """Store that a document is purged, within the caller's transaction."""
    await connection.execute(delete(shown_files).where(shown_files.c.article_id == article_id))
