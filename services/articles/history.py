"""The history of a document: its edits, their reversal, and earlier states."""

import asyncio
from collections.abc import Sequence

import orjson

from gateway.articles.v1.articles_pb2 import BlockDifference, HistoryEntry
from services.articles.cache import DocumentState
from services.articles.changes import changed_blocks, changed_labels, names_any
from services.articles.committer import DocumentCommitter
from services.articles.edit_calls import EditConditions
from services.articles.edit_results import EditResult
from services.articles.errors import STALE, no_history, nothing_to_reverse
from services.articles.markdown import ElementRenderer
from services.articles.operation_log import HISTORY, RESTORED, OperationLog
from services.articles.repeats import RepeatableRequest
from services.articles.reversible import read_head, reversible
from services.articles.sessions import SessionRef
from services.articles.tree.document import Document
from services.articles.tree.operations import (
    OperationSequence,
    Redo,
    Reverse,
    Undo,
    from_json,
)
from services.common.errors import GatewayError

# Differences in one response.
MAX_DIFFERENCES = 500
# Attempts to restore a document that others edit meanwhile.
_ATTEMPTS = 3


class History:
    """The histories of the documents of sessions.

    Every method raises the errors of sessions, and `unavailable` when the database does not answer.
    """

    def __init__(self, committer: DocumentCommitter, operation_log: OperationLog) -> None:
        self._committer = committer
        self._log = operation_log

    async def entries(
        self, session: SessionRef, before: int | None, limit: int
    ) -> tuple[list[HistoryEntry], bool]:
        """Return the entries below a revision, the newest first, and whether there are older ones.

        Args:
            session: the session.
            before: the revision; None for the newest entries.
            limit: maximum number of entries.
        """
        article_id, state = await self._committer.open(session)
        newest = state.revision + 1
        rows = await self._log.page(
            article_id, newest if before is None else min(before, newest), limit + 1
        )
        entries = []
        for revision, user_id, at_ms, head in rows[:limit]:
            read = read_head(revision, bytes(head))
            entries.append(
                HistoryEntry(
                    revision=revision,
                    at_ms=at_ms,
                    is_own=user_id == session.user_id,
                    operation=read.name,
                    reversed_revision=read.reversed_revision,
                )
            )
        return entries, len(rows) > limit

    async def reverse(
        self, session: SessionRef, request: RepeatableRequest | None = None, *, is_redo: bool
    ) -> EditResult:
        """Undo the caller's last edit, or redo what the caller undid last, as a new edit.

        Raises:
            GatewayError: 40904, there is none; 40903, a block of it has changed since.
        """
        article_id, _ = await self._committer.open(session)
        last = reversible(await self._log.heads_of(article_id, session.user_id, session.session_id))
        revision = last.redo if is_redo else last.undo
        entry = await self._log.entry(article_id, revision) if revision else None
        if entry is None:
            raise nothing_to_reverse("redo" if is_redo else "undo")
        operation, inverse = (from_json(orjson.loads(stored)) for stored in entry)
        reversal = (Redo if is_redo else Undo)(revision, inverse)
        edit = Reverse(reversal, operation)
        return await self._committer.edit(session, edit, request=request)

    async def restore(
        self, session: SessionRef, revision: int, request: RepeatableRequest | None = None
    ) -> EditResult:
        """Make a document what it was at a revision, as a new edit.

        Raises:
            GatewayError: 40408, the revision is not available; 40901, others edit at once.
        """
        attempt = 1
        while True:
            article_id, state = await self._committer.open(session)
            inverses: Sequence[bytes] | None = ()
            if revision != state.revision:
                inverses = await self._log.inverses_since(article_id, state, revision, RESTORED)
            if inverses is None:
                raise no_history("/revision")
            edit = await asyncio.to_thread(_sequence, inverses)
            try:
                conditions = EditConditions(state.revision)
                return await self._committer.edit(session, edit, conditions, request)
            except GatewayError as error:
                if error.article_code != STALE or attempt == _ATTEMPTS:
                    raise
            attempt += 1

    async def differences(
        self, session: SessionRef, first: int, last: int | None
    ) -> tuple[list[BlockDifference], bool]:
        """Return the blocks that differ between two revisions, and whether there are more.

        Args:
            session: the session.
            first: the earlier revision.
            last: the later revision; None for the current one.

        Raises:
            GatewayError: 40408, a revision is not available.
        """
        article_id, state = await self._committer.open(session)
        before = await self._document(article_id, state, first, "/from")
        after = state.document
        if last is not None:
            after = await self._document(article_id, state, last, "/to")
        return await asyncio.to_thread(_differences, before, after)

    async def _document(
        self, article_id: str, state: DocumentState, revision: int, pointer: str
    ) -> Document:
        if revision == state.revision:
            return state.document
        document = await self._log.state_at(article_id, state, revision, HISTORY)
        if document is None:
            raise no_history(pointer)
        return document


def _sequence(inverses: Sequence[bytes]) -> OperationSequence:
    return OperationSequence(tuple([from_json(orjson.loads(inverse)) for inverse in inverses]))


def _differences(before: Document, after: Document) -> tuple[list[BlockDifference], bool]:
    renderers = ElementRenderer(before), ElementRenderer(after)
    earlier = {block.id: block for block in before.blocks}
    later = {block.id: block for block in after.blocks}
    labels = changed_labels(before, after)
    # Blocks that were restored are other objects, but equal.
    changed = [
        block_id
        for block_id in changed_blocks(before, after)
        if before.style != after.style
        or before.properties != after.properties
        or earlier.get(block_id) != later[block_id]
        or later[block_id].cites
        or names_any(later[block_id], labels)
    ]
    removed = [block_id for block_id in earlier if block_id not in later]
    differences = []
    for block_id in [*changed, *removed][: MAX_DIFFERENCES + 1]:
        difference = BlockDifference(block_id=block_id)
        if block_id in earlier:
            difference.before = renderers[0].block(earlier[block_id])
        if block_id in later:
            difference.after = renderers[1].block(later[block_id])
        differences.append(difference)
    return differences[:MAX_DIFFERENCES], len(differences) > MAX_DIFFERENCES
