"""New documents with the content of another: of a template, or all of it."""

import asyncio

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.articles.v1.articles_pb2 import Article, CreateArticleRequest
from services.articles import codec
from services.articles.codec import AppliedOperation
from services.articles.errors import SCHEMA, failure
from services.articles.operation_log import LogEntry, OperationLog
from services.articles.repository import ArticleRepository, find
from services.articles.tree.copies import copy_of
from services.articles.tree.document import Document
from services.articles.tree.parsing import NewId
from services.articles.usage import OwnerUsage, add_to_documents, blocks_for, size_of
from services.common.errors import GatewayError
from services.common.storage.database import reading
from services.common.storage.shown_files import ShownFile, add_shown_files


class ArticleCopier:
    """Creates documents from others; raises `unavailable` when the database does not answer."""

    def __init__(
        self,
        engine: AsyncEngine,
        articles: ArticleRepository,
        log: OperationLog,
        usage: OwnerUsage,
        new_id: NewId,
    ) -> None:
        self._engine = engine
        self._articles = articles
        self._log = log
        self._usage = usage
        self._new_id = new_id

    async def create(self, user_id: str, plan: str, request: CreateArticleRequest) -> Article:
        """Create a document whose first edit copies another, as the current task's caller.

        Raises:
            GatewayError: 40402, there is no such document, or the user may not read it; 40003, no
                block of it is marked as a template, or it is too long; and those of
                `ArticleRepository.create`.
        """
        source_id = request.source_id
        async with reading(self._engine) as connection:
            await find(connection, user_id, source_id, "/from")
        source = await self._log.load(source_id)
        applied = await asyncio.to_thread(
            _first_edit, source.document, self._new_id, copies_all=request.copies_all
        )
        if applied is None:
            problem = "no block of this document is a template; copy all of it by content: all"
            raise failure(SCHEMA, "/from", problem)

        async def fill(connection: AsyncConnection, article_id: str) -> None:
            size = blocks_for(size_of(applied.operation, applied.inverse))
            if not await self._usage.charge(connection, {user_id: size}):
                raise await self._usage.refusal(connection, user_id, size)
            await add_to_documents(connection, {article_id: size})
            entry = LogEntry(article_id, 1, user_id, applied.operation, applied.inverse)
            await self._log.append(connection, [entry])
            if file_ids := applied.document.blocks.files():
                shown = [ShownFile(article_id, file_id) for file_id in file_ids]
                await add_shown_files(connection, shown)

        is_empty = applied.document.is_same(Document())
        return await self._articles.create(
            user_id, plan, request.group_id, request.name, None if is_empty else fill
        )


def _first_edit(source: Document, new_id: NewId, *, copies_all: bool) -> AppliedOperation | None:
    edit = copy_of(source, new_id, copies_all=copies_all)
    if edit is None:
        return None
    try:
        return codec.apply(Document(), edit)
    except GatewayError as error:
        raise failure(SCHEMA, "/from", error.message) from None
