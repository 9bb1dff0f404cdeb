"""Suggested edits in the database, and how they are accepted.

A suggestion is stored as the patch of the blocks that its edit would change, and is refused when
one of these has been changed since. Only replacements of texts, which find their place by what it
says, are made again on such blocks, as long as they change no others.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.articles.v1.edits_pb2 import Edit
from services.articles.edit_results import EditResult
from services.articles.errors import (
    SCHEMA,
    failure,
    no_suggestion,
)
from services.articles.repeats import AnsweredRequests, RepeatableRequest
from services.articles.tables import suggestions
from services.articles.tree.block_patches import BlockPatch
from services.articles.tree.document import Document
from services.articles.tree.edits import read_edit
from services.articles.tree.errors import EditError
from services.articles.tree.operations.base import Change
from services.articles.tree.parsing import NewId
from services.common import ids
from services.common.articles import limits
from services.common.clock import Clock
from services.common.storage.database import reading
from services.common.storage.shown_files import add_suggested_files

PREFIX = "suggestion_"
# Bytes charged for a row, besides its content.
_ROW_BYTES = 256
# The kind of edits that are made again on blocks that have changed.
_BY_TEXT = "edit_text"


class SuggestedEdit(NamedTuple):
    """An edit, and what it would change.

    Attributes:
        kind: the field of `Edit` that it is, or `import_article`.
        patch: what it changes.
        result: the answer to its author, without the id of the suggestion.
        edit: the edit's message, if it has one.
    """

    kind: str
    patch: BlockPatch
    result: EditResult
    edit: Edit | None = None


class StoredSuggestion(NamedTuple):
    """A pending edit.

    Attributes:
        id: its id.
        user_id: its author.
        created_at_ms: Unix milliseconds.
        revision: the revision of the document that it was made for.
        kind: the field of `Edit` that it is.
        patch: what it changes.
        edit: the edit, if it can be made again on blocks that have changed; otherwise None.
    """

    id: str
    user_id: str
    created_at_ms: int
    revision: int
    kind: str
    patch: BlockPatch
    edit: Edit | None


class AcceptSuggestion(Struct, frozen=True):
    """Make a suggested edit.

    Attributes:
        suggestion: the suggestion.
        new_id: returns an id that no element ever had.
    """

    suggestion: StoredSuggestion
    new_id: NewId

    def apply(self, document: Document) -> Change:
        """Apply the patch, or replace the texts again.

        Raises:
            EditError: 40907, a block that it changes has been changed since.
        """
        try:
            return self.suggestion.patch.apply(document)
        except EditError as refused:
            change = self._again(document)
            if change is None:
                raise refused from None
            return change

    def _again(self, document: Document) -> Change | None:
        if self.suggestion.edit is None:
            return None
        try:
            change = read_edit(self.suggestion.edit, self.new_id).apply(document)
        except EditError:
            return None
        changes_others = not self.suggestion.patch.changed.keys() >= {*change.ids}
        return None if changes_others else replace(change, ids=())


class SuggestionRepository:
    """Suggestions in the database.

    Every method that opens a transaction raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        requests: AnsweredRequests,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._requests = requests
        self._new_id = new_id

    async def add(
        self,
        article_id: str,
        user_id: str,
        suggested: SuggestedEdit,
        request: RepeatableRequest | None,
    ) -> EditResult:
        """Store an edit as a suggestion; return the answer to its author.

        Args:
            article_id: the document.
            user_id: the author.
            suggested: the edit.
            request: the request, if its caller gave it an id. If its result is stored, that is
                returned, and nothing is stored.

        Raises:
            GatewayError: 40003, it changes nothing, or the document has too many; 40905; 41002.
        """
        if suggested.patch.is_empty:
            raise failure(SCHEMA, "/suggest", "the edit would change nothing")
        patch = orjson.dumps(suggested.patch.to_json())
        message = None
        if suggested.kind == _BY_TEXT and suggested.edit is not None:
            message = suggested.edit.SerializeToString()
        size = _ROW_BYTES + len(patch) + len(message or b"")
        row = {
            "id": self._new_id(PREFIX),
            "article_id": article_id,
            "user_id": user_id,
            "created_at_ms": int(self._clock.now() * 1000),
            "revision": suggested.result.revision,
            "kind": suggested.kind,
            "patch": patch,
            "edit": message,
            "size_bytes": size,
        }
        result = suggested.result._replace(suggestion_id=str(row["id"]))

        async def insert_suggestion(connection: AsyncConnection) -> EditResult:
            await _check_room(connection, article_id, size)
            await connection.execute(insert(suggestions).values(row))
            await add_suggested_files(connection, str(row["id"]), suggested.patch.files())
            return result

        return await self._requests.once(article_id, user_id, request, insert_suggestion)

    async def get(self, article_id: str, suggestion_id: str) -> StoredSuggestion:
        """Return a suggestion.

        Raises:
            GatewayError: 40411.
        """
        rows = await self._rows(article_id, suggestions.c.id == suggestion_id, limit=1)
        if not rows:
            raise no_suggestion()
        return rows[0]

    async def page(self, article_id: str, after_id: str, limit: int) -> Sequence[StoredSuggestion]:
        """Return suggestions of a document, the oldest first, after the one with an id."""
        return await self._rows(article_id, suggestions.c.id > after_id, limit=limit)

    async def reject(
        self, article_id: str, user_id: str, suggestion_id: str, request: RepeatableRequest | None
    ) -> None:
        """Delete a suggestion, once for a request with an id.

        Raises:
            GatewayError: 40411, 40905, 41002.
        """
        which = (suggestions.c.id == suggestion_id, suggestions.c.article_id == article_id)

        async def remove(connection: AsyncConnection) -> EditResult:
            deleted = await connection.execute(delete(suggestions).where(*which))
            if not deleted.rowcount:
                raise no_suggestion()
            return EditResult(0)

        await self._requests.once(article_id, user_id, request, remove)

    async def _rows(
        self, article_id: str, which: ColumnElement[bool], limit: int
    ) -> Sequence[StoredSuggestion]:
        query = (
            select(suggestions)
            .where(suggestions.c.article_id == article_id, which)
            .order_by(suggestions.c.id)
            .limit(limit)
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        return [
            StoredSuggestion(
                row.id,
                row.user_id,
                row.created_at_ms,
                row.revision,
                row.kind,
                BlockPatch.from_json(orjson.loads(row.patch)),
                None if row.edit is None else Edit.FromString(row.edit),
            )
            for row in rows
        ]


async def lock_pending(connection: AsyncConnection, suggestion_ids: Collection[str]) -> set[str]:
    """Return which suggestions are pending; they are locked until the end of the transaction."""
    query = (
        select(suggestions.c.id)
        .where(suggestions.c.id.in_(sorted(suggestion_ids)))
        # The same order everywhere, so that two transactions never deadlock.
        .order_by(suggestions.c.id)
        .with_for_update()
    )
    return {*(await connection.scalars(query)).all()}


async def remove_accepted(connection: AsyncConnection, suggestion_ids: Collection[str]) -> None:
    """Delete suggestions within the caller's transaction."""
    await connection.execute(delete(suggestions).where(suggestions.c.id.in_(suggestion_ids)))


async def _check_room(connection: AsyncConnection, article_id: str, added: int) -> None:
    query = select(func.count(), func.coalesce(func.sum(suggestions.c.size_bytes), 0)).where(
        suggestions.c.article_id == article_id
    )
    count, size = (await connection.execute(query)).one()
    if count >= limits.SUGGESTIONS or size + added > limits.SUGGESTIONS_BYTES:
        problem = (
            f"a document can have at most {limits.SUGGESTIONS} suggestions, of "
            f"{limits.SUGGESTIONS_BYTES} bytes in all; accept or reject some"
        )
        raise failure(SCHEMA, "/suggest", problem)
