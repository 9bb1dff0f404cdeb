"""Comments over gRPC."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from gateway.articles.v1 import comments_pb2
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles.callers import Callers, UserNames
from services.articles.codec import to_gateway_error
from services.articles.comments import CommentChange, CommentRepository, StoredComment
from services.articles.committer import DocumentCommitter
from services.articles.errors import BLOCK, SCHEMA, failure
from services.articles.repeats import RepeatableRequest
from services.articles.tree.anchors import Anchor, find_passage
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import walk
from services.common.articles import limits
from services.common.storage.disk import DiskReserve

Context = grpc.aio.ServicerContext


class CommentCalls(ArticleEditorServiceServicer):
    """The RPCs on comments."""

    _callers: Callers
    _committer: DocumentCommitter
    _comments: CommentRepository
    _names_of: UserNames
    _reserve: DiskReserve

    async def AddComment(
        self, request: comments_pb2.AddCommentRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.AddCommentResponse:
        """Add a comment."""
        session = await self._callers.session(request.session_id)
        article_id, state = await self._committer.open(session)
        self._reserve.check()
        change = CommentChange(article_id, session.user_id, RepeatableRequest.of(request))
        result = None
        if change.request is not None:
            # The passage may have changed since.
            result = await self._committer.result_of(session, change.request)
        if result is None:
            anchor = await asyncio.to_thread(_anchor, state.document, request)
            result = await self._comments.add(
                change, request.text, request.block_id, anchor, state.revision
            )
        return comments_pb2.AddCommentResponse(
            comment_id=result.outcome.ids[0], revision=result.revision
        )

    async def ReplyToComment(
        self, request: comments_pb2.ReplyToCommentRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.ReplyToCommentResponse:
        """Add a reply."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        self._reserve.check()
        change = CommentChange(article_id, session.user_id, RepeatableRequest.of(request))
        reply_id = await self._comments.reply(change, request.comment_id, request.text)
        return comments_pb2.ReplyToCommentResponse(comment_id=reply_id)

    async def EditComment(
        self, request: comments_pb2.EditCommentRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.EditCommentResponse:
        """Change the text of a comment."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        self._reserve.check()
        change = CommentChange(article_id, session.user_id, RepeatableRequest.of(request))
        await self._comments.edit(change, request.comment_id, request.text)
        return comments_pb2.EditCommentResponse()

    async def ResolveComment(
        self, request: comments_pb2.ResolveCommentRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.ResolveCommentResponse:
        """Resolve a thread, or open it again."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        change = CommentChange(article_id, session.user_id, RepeatableRequest.of(request))
        await self._comments.resolve(change, request.comment_id, reopens=request.reopens)
        return comments_pb2.ResolveCommentResponse()

    async def DeleteComment(
        self, request: comments_pb2.DeleteCommentRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.DeleteCommentResponse:
        """Delete a comment."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        change = CommentChange(article_id, session.user_id, RepeatableRequest.of(request))
        await self._comments.delete(change, request.comment_id)
        return comments_pb2.DeleteCommentResponse()

    async def ListComments(
        self, request: comments_pb2.ListCommentsRequest, context: "Context[Any, Any]"
    ) -> comments_pb2.ListCommentsResponse:
        """List the comments of a document."""
        session = await self._callers.session(request.session_id)
        article_id, state = await self._committer.open(session)
        threads = await self._comments.threads(article_id, with_resolved=request.with_resolved)
        if request.HasField("block_id"):
            element_ids = _elements_in(state.document, request.block_id)
            threads = [thread for thread in threads if not element_ids.isdisjoint(_ids(thread[0]))]
        names = await self._names_of({one.user_id for thread in threads for one in thread})
        messages = await asyncio.to_thread(
            _messages, threads, state.document, session.user_id, names
        )
        return comments_pb2.ListCommentsResponse(threads=messages, revision=state.revision)


def _anchor(document: Document, request: comments_pb2.AddCommentRequest) -> Anchor | None:
    """Return the passage that a comment is on, or None for all of the element.

    Raises:
        GatewayError: 40003, 40005, 40403.
    """
    if document.path_of(request.block_id) is None:
        raise _no_block()
    if not request.HasField("quote"):
        if request.HasField("offset"):
            raise failure(SCHEMA, "/offset", "is allowed only with quote")
        return None
    if not 1 <= len(request.quote) <= limits.QUOTE or "\0" in request.quote:
        problem = f"must have 1 to {limits.QUOTE} characters, without NUL"
        raise failure(SCHEMA, "/quote", problem)
    offset = request.offset if request.HasField("offset") else None
    try:
        return find_passage(document, request.block_id, request.quote, offset)
    except EditError as error:
        raise to_gateway_error(error) from None


def _elements_in(document: Document, block_id: str) -> set[str]:
    element = document.element(block_id)
    if element is None:
        raise _no_block()
    return {each.id for each in walk(element)}


def _ids(comment: StoredComment) -> set[str]:
    """Return the ids of the element that a comment is on, and of the one with its passage."""
    passage = comment.anchor
    return {comment.element_id} if passage is None else {comment.element_id, passage.element_id}


def _no_block() -> Exception:
    return failure(BLOCK, "/blockId", "no block with this id in the document")


def _messages(
    threads: Sequence[Sequence[StoredComment]],
    document: Document,
    user_id: str,
    names: Mapping[str, str],
) -> list[comments_pb2.CommentThread]:
    return [_message(thread, document, user_id, names) for thread in threads]


def _message(
    thread: Sequence[StoredComment], document: Document, user_id: str, names: Mapping[str, str]
) -> comments_pb2.CommentThread:
    first = thread[0]
    message = comments_pb2.CommentThread(
        comments=[
            comments_pb2.Comment(
                id=comment.id,
                text=comment.text,
                user_id=comment.user_id,
                user_name=names.get(comment.user_id, ""),
                is_own=comment.user_id == user_id,
                created_at_ms=comment.created_at_ms,
                edited_at_ms=comment.edited_at_ms,
            )
            for comment in thread
        ],
        block_id=first.element_id,
        is_resolved=first.is_resolved,
    )
    if first.anchor is None:
        message.is_orphaned = document.path_of(first.element_id) is None
        return message
    message.quote = first.anchor.quote
    place = first.anchor.place(document)
    message.is_orphaned = place is None
    if place is not None:
        message.block_id = first.anchor.element_id
        message.offset = place
    return message
