"""The gRPC servicer of document editing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import Any

import grpc

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.edits_pb2 import Edit
from services.articles import codec, responses
from services.articles.callers import Callers, UserNames
from services.articles.commenting import CommentCalls
from services.articles.comments import CommentRepository
from services.articles.committer import DocumentCommitter
from services.articles.conversions import DocumentConverter
from services.articles.copies import ArticleCopier
from services.articles.edit_calls import EditConditions
from services.articles.edit_results import EditResult
from services.articles.errors import (
    FIELDS,
    SCHEMA,
    block_changed,
    failure,
)
from services.articles.exporting import ExportCalls
from services.articles.exports import DocumentExporter
from services.articles.files import FileAccess, check_ownership, referenced_files
from services.articles.following import ChangeWaiter, FollowingCalls
from services.articles.groups import GroupRepository
from services.articles.history import History
from services.articles.images import picture_at, read_picture
from services.articles.imports import DocumentImporter
from services.articles.outline import find, outline
from services.articles.repeats import RepeatableRequest
from services.articles.repository import ArticleRepository
from services.articles.sessions import SessionRef, SessionRepository
from services.articles.sharing import SharingCalls
from services.articles.suggesting import SuggestionCalls
from services.articles.suggestions import SuggestedEdit, SuggestionRepository
from services.articles.tree.edits import named_block
from services.articles.tree.operations import DocumentEdit
from services.common import ids
from services.common.articles import limits
from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.plans import plan_name
from services.common.process.offload import offload_if
from services.common.storage.disk import DiskReserve

# Size in bytes of an edit or document from which on it is decoded or rendered in a thread: 2 kB
# take about a millisecond of the event loop.
_LARGE = 32 << 10
# The same for edits with Markdown or bibliographies, which take longer to parse.
_LARGE_PARSED = 2 << 10
_PARSED = ("edit_text", "apply_edits", "import_references", "write_markdown")
_MAX_CLIENT_ID = 64  # characters
# The kind of a suggestion that is an import, which is no field of `Edit`.
_IMPORT = "import_article"

Context = grpc.aio.ServicerContext


class ArticleEditorServicer(
    SharingCalls, CommentCalls, SuggestionCalls, ExportCalls, FollowingCalls
):
    """The gRPC servicer of ArticleEditorService, for documents that the caller may edit."""

    def __init__(
        self,
        articles: ArticleRepository,
        sessions: SessionRepository,
        committer: DocumentCommitter,
        files: FileAccess,
        callers: Callers,
        groups: GroupRepository,
        names_of: UserNames,
        copier: ArticleCopier,
        comments: CommentRepository,
        suggestions: SuggestionRepository,
        reserve: DiskReserve,
        history: History,
        converter: DocumentConverter,
        waiter: ChangeWaiter,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        """Initialize the servicer."""
        self._reserve = reserve
        self._history = history
        self._waiter = waiter
        self._articles = articles
        self._sessions = sessions
        self._committer = committer
        self._files = files
        self._callers = callers
        self._groups = groups
        self._names_of = names_of
        self._copier = copier
        self._comments = comments
        self._suggestions = suggestions
        self._new_id = partial(new_id, "")
        self._converter = converter
        self._exporter = DocumentExporter(files, converter)
        self._importer = DocumentImporter(files, converter, self._new_id)

    async def CreateSession(
        self, request: wire.CreateSessionRequest, context: "Context[Any, Any]"
    ) -> wire.CreateSessionResponse:
        """Open a document."""
        user_id = await self._callers.user_id()
        plan = plan_name(caller.get().plan)
        client_id = _client_id(request)
        session_id, reused = await self._sessions.open(user_id, plan, request.article_id, client_id)
        state = await self._committer.read(SessionRef(session_id, user_id))
        return wire.CreateSessionResponse(
            session_id=session_id,
            block_count=len(state.document.blocks),
            reused=reused,
            revision=state.revision,
        )

    async def DestroySession(
        self, request: wire.DestroySessionRequest, context: "Context[Any, Any]"
    ) -> wire.DestroySessionResponse:
        """Close a document: end its session."""
        await self._sessions.end(await self._callers.session(request.session_id))
        return wire.DestroySessionResponse()

    async def ListArticles(
        self, request: wire.ListArticlesRequest, context: "Context[Any, Any]"
    ) -> wire.ListArticlesResponse:
        """List the caller's groups with their documents."""
        groups = await self._articles.list_groups(await self._callers.user_id())
        return wire.ListArticlesResponse(groups=groups)

    async def CreateArticle(
        self, request: wire.CreateArticleRequest, context: "Context[Any, Any]"
    ) -> wire.CreateArticleResponse:
        """Create a document."""
        user_id = await self._callers.user_id()
        self._reserve.check()
        plan = plan_name(caller.get().plan)
        if request.HasField("source_id"):
            article = await self._copier.create(user_id, plan, request)
        else:
            article = await self._articles.create(user_id, plan, request.group_id, request.name)
        return wire.CreateArticleResponse(article=article)

    async def DeleteArticle(
        self, request: wire.DeleteArticleRequest, context: "Context[Any, Any]"
    ) -> wire.DeleteArticleResponse:
        """Delete a document."""
        await self._articles.delete(await self._callers.user_id(), request.article_id)
        self._committer.forget(request.article_id)
        return wire.DeleteArticleResponse()

    async def ReadArticle(
        self, request: wire.ReadArticleRequest, context: "Context[Any, Any]"
    ) -> wire.ReadArticleResponse:
        """Return a document."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        return await offload_if(state.size >= _LARGE, responses.read_article, state, request)

    async def ReadBlock(
        self, request: wire.ReadBlockRequest, context: "Context[Any, Any]"
    ) -> wire.ReadBlockResponse:
        """Return a block."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        return await offload_if(state.size >= _LARGE, responses.read_block, state, request.block_id)

    async def ReadBlocks(
        self, request: wire.ReadBlocksRequest, context: "Context[Any, Any]"
    ) -> wire.ReadBlocksResponse:
        """Return several blocks."""
        session = await self._callers.session(request.session_id)
        state = await self._committer.read(session)
        if not 1 <= len(request.block_ids) <= limits.BLOCKS_A_READ:
            takes = f"must contain 1 to {limits.BLOCKS_A_READ} ids"
            raise failure(SCHEMA, "/blockIds", takes)
        return await offload_if(
            state.size >= _LARGE, responses.read_blocks, state, request.block_ids
        )

    async def ReadImage(
        self, request: wire.ReadImageRequest, context: "Context[Any, Any]"
    ) -> AsyncIterator[wire.ReadImageResponse]:
        """Read a picture, which need not belong to the caller."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        picture = picture_at(state.document, request.block_id, request.index)
        async for message in read_picture(picture, self._files):
            yield message

    async def ApplyEdit(
        self, request: wire.ApplyEditRequest, context: "Context[Any, Any]"
    ) -> wire.ApplyEditResponse:
        """Apply an edit."""
        session = await self._callers.session(request.session_id)
        is_parsed = request.edit.WhichOneof("kind") in _PARSED
        is_large = request.edit.ByteSize() >= (_LARGE_PARSED if is_parsed else _LARGE)
        try:
            repeatable = await offload_if(is_large, RepeatableRequest.of, request)
        except GatewayError:
            await self._committer.keep_alive(session)
            raise
        if request.dry_run:
            return (await self._edit(session, request, None, is_large)).to_message()
        edited = self._edit(session, request, repeatable, is_large)
        return (await self._once(session, repeatable, edited)).to_message()

    async def ReadOutline(
        self, request: wire.ReadOutlineRequest, context: "Context[Any, Any]"
    ) -> wire.ReadOutlineResponse:
        """Return the headings of a document."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        headings = await offload_if(state.size >= _LARGE, outline, state.document)
        return wire.ReadOutlineResponse(headings=headings, revision=state.revision)

    async def FindText(
        self, request: wire.FindTextRequest, context: "Context[Any, Any]"
    ) -> wire.FindTextResponse:
        """Find a text in a document."""
        state = await self._committer.read(await self._callers.session(request.session_id))
        if not 1 <= len(request.query) <= limits.QUERY:
            raise failure(SCHEMA, "/query", f"must have 1 to {limits.QUERY} characters")
        limit = request.limit if request.HasField("limit") else limits.PLACES
        if not 1 <= limit <= limits.PLACES_AT_MOST:
            raise failure(SCHEMA, "/limit", f"must be 1 to {limits.PLACES_AT_MOST}")
        search = partial(find, state.document, request.query, limit, is_regex=request.is_regex)
        is_slow = request.is_regex or state.size >= _LARGE
        places, has_more = await offload_if(is_slow, search)
        return wire.FindTextResponse(places=places, has_more=has_more, revision=state.revision)

    async def ImportArticle(
        self, request: wire.ImportArticleRequest, context: "Context[Any, Any]"
    ) -> wire.ImportArticleResponse:
        """Insert a document in another format."""
        session = await self._callers.session(request.session_id)
        self._reserve.check()
        repeatable = RepeatableRequest.of(request)
        if repeatable is not None:
            # Its pictures are not stored again.
            result = await self._committer.result_of(session, repeatable)
            if result is not None:
                return result.to_import()
        revision = request.if_revision if request.HasField("if_revision") else None
        conditions = EditConditions(revision)
        conditions.check(await self._committer.read(session))
        edit = await self._importer.read(request)
        await self._check_files(session, edit)
        if request.suggest:
            of_edit = (_IMPORT, None)
            result = await self._suggest(session, of_edit, edit, conditions, repeatable)
        else:
            result = await self._committer.edit(session, edit, conditions, repeatable)
        return result.to_import()

    async def ListHistory(
        self, request: wire.ListHistoryRequest, context: "Context[Any, Any]"
    ) -> wire.ListHistoryResponse:
        """List edits of a document."""
        session = await self._callers.session(request.session_id)
        limit = request.limit if request.HasField("limit") else limits.ENTRIES_A_PAGE
        if not 1 <= limit <= limits.ENTRIES_A_PAGE:
            await self._committer.keep_alive(session)
            raise failure(SCHEMA, "/limit", f"must be 1 to {limits.ENTRIES_A_PAGE}")
        before = request.before if request.HasField("before") else None
        entries, has_more = await self._history.entries(session, before, limit)
        return wire.ListHistoryResponse(entries=entries, has_more=has_more)

    async def ReverseEdit(
        self, request: wire.ReverseEditRequest, context: "Context[Any, Any]"
    ) -> wire.ReverseEditResponse:
        """Undo or redo the caller's last edit."""
        session = await self._callers.session(request.session_id)
        self._reserve.check()
        repeatable = RepeatableRequest.of(request)
        reversal = self._history.reverse(session, repeatable, is_redo=request.redo)
        result = await self._once(session, repeatable, reversal)
        return wire.ReverseEditResponse(revision=result.revision)

    async def RestoreRevision(
        self, request: wire.RestoreRevisionRequest, context: "Context[Any, Any]"
    ) -> wire.RestoreRevisionResponse:
        """Restore an earlier state of a document."""
        session = await self._callers.session(request.session_id)
        self._reserve.check()
        repeatable = RepeatableRequest.of(request)
        restoration = self._history.restore(session, request.revision, repeatable)
        result = await self._once(session, repeatable, restoration)
        return wire.RestoreRevisionResponse(revision=result.revision)

    async def ReadDifferences(
        self, request: wire.ReadDifferencesRequest, context: "Context[Any, Any]"
    ) -> wire.ReadDifferencesResponse:
        """Return the blocks that differ between two revisions."""
        session = await self._callers.session(request.session_id)
        last = request.last if request.HasField("last") else None
        blocks, has_more = await self._history.differences(session, request.first, last)
        return wire.ReadDifferencesResponse(blocks=blocks, has_more=has_more)

    async def KeepSessionAlive(
        self, request: wire.KeepSessionAliveRequest, context: "Context[Any, Any]"
    ) -> wire.KeepSessionAliveResponse:
        """Keep a session alive."""
        await self._committer.keep_alive(await self._callers.session(request.session_id))
        return wire.KeepSessionAliveResponse()

    async def _edit(
        self,
        session: SessionRef,
        request: wire.ApplyEditRequest,
        repeatable: RepeatableRequest | None,
        is_large: bool,
    ) -> EditResult:
        """Apply the edit of a request, or return the result that it would have."""
        try:
            self._reserve.check()
            edit = await offload_if(is_large, codec.decode_edit, request.edit, self._new_id)
            await self._check_files(session, edit)
        except GatewayError:
            # A refused edit keeps its session alive too. If the session has ended, that error
            # takes precedence.
            await self._committer.keep_alive(session)
            raise
        conditions = await self._conditions(session, request)
        if request.suggest:
            if request.dry_run:
                raise failure(FIELDS, "/suggest", "cannot be combined with dryRun")
            of_edit = (str(request.edit.WhichOneof("kind")), request.edit)
            return await self._suggest(session, of_edit, edit, conditions, repeatable)
        if not request.dry_run:
            return await self._committer.edit(session, edit, conditions, repeatable)
        state = await self._committer.read(session)
        conditions.check(state)
        applied = await asyncio.to_thread(codec.apply, state.document, edit)
        return EditResult(state.revision, applied.outcome, applied.of_edits)

    async def _suggest(
        self,
        session: SessionRef,
        of_edit: tuple[str, Edit | None],
        edit: DocumentEdit,
        conditions: EditConditions,
        repeatable: RepeatableRequest | None,
    ) -> EditResult:
        """Store an edit, with its kind and its message, as a suggestion."""
        article_id, state = await self._committer.open(session)
        conditions.check(state)
        patch, outcome, of_edits = await asyncio.to_thread(
            codec.suggested_patch, state.document, edit
        )
        result = EditResult(state.revision, outcome, of_edits)
        kind, message = of_edit
        suggested = SuggestedEdit(kind, patch, result, message)
        return await self._suggestions.add(article_id, session.user_id, suggested, repeatable)

    async def _once(
        self,
        session: SessionRef,
        request: RepeatableRequest | None,
        edited: Awaitable[EditResult],
    ) -> EditResult:
        """Return the result of an edit, or that of the first request if it is a repeated one.

        What is checked before the edit may fail the second time, since the first has changed it.
        """
        try:
            return await edited
        except GatewayError:
            result = None if request is None else await self._committer.result_of(session, request)
            if result is None:
                raise
            return result

    async def _conditions(
        self, session: SessionRef, request: wire.ApplyEditRequest
    ) -> EditConditions:
        """Return the conditions of an edit.

        Raises:
            GatewayError: 40004, the edit names no block; 40901, it is unknown how the block was.
        """
        revision = request.if_revision if request.HasField("if_revision") else None
        if not request.HasField("if_block_revision"):
            return EditConditions(revision)
        read = request.if_block_revision
        state, before = await self._committer.read_since(session, read)
        block_id = named_block(request.edit)
        if not block_id:
            problem = "allowed only for edits that name a block"
            raise failure(FIELDS, "/ifBlockRevision", problem)
        if state.document.element(block_id) is None:
            return EditConditions(revision)  # the edit is refused for that
        document = state.document if read == state.revision else before
        block = None if document is None else document.element(block_id)
        if block is None:
            raise block_changed(state.revision)
        return EditConditions(revision, block)

    async def _check_files(self, session: SessionRef, edit: DocumentEdit) -> None:
        """Check that files which an edit adds to the document belong to the caller.

        An editor may keep, change and move a figure whose file is another user's, or has expired.
        """
        if pointers := referenced_files(edit):
            state = await self._committer.read(session)
            shown_ids = state.document.blocks.files()
            await check_ownership(
                self._files,
                {file_id: at for file_id, at in pointers.items() if file_id not in shown_ids},
            )


def _client_id(request: wire.CreateSessionRequest) -> str:
    """Return the id of the client that opens a document, or "" if it does not name itself.

    Raises:
        GatewayError: 40003.
    """
    if not request.HasField("client_id"):
        return ""
    client_id = request.client_id
    if not (
        1 <= len(client_id) <= _MAX_CLIENT_ID and client_id.isascii() and client_id.isprintable()
    ):
        problem = f"must have 1 to {_MAX_CLIENT_ID} printable ASCII characters"
        raise failure(SCHEMA, "/clientId", problem)
    return client_id
