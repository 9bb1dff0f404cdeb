"""Suggestions over gRPC."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import grpc

from gateway.articles.v1 import suggestions_pb2
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles.callers import Callers, UserNames
from services.articles.committer import DocumentCommitter
from services.articles.edit_calls import EditConditions
from services.articles.errors import SCHEMA, failure
from services.articles.markdown import ElementRenderer
from services.articles.repeats import RepeatableRequest
from services.articles.suggestions import (
    AcceptSuggestion,
    StoredSuggestion,
    SuggestionRepository,
)
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import Element
from services.articles.tree.parsing import NewId
from services.common.articles import limits
from services.common.storage.disk import DiskReserve

Context = grpc.aio.ServicerContext


class SuggestionCalls(ArticleEditorServiceServicer):
    """The RPCs on suggestions, which `ApplyEdit` makes."""

    _callers: Callers
    _committer: DocumentCommitter
    _suggestions: SuggestionRepository
    _names_of: UserNames
    _reserve: DiskReserve
    _new_id: NewId

    async def ListSuggestions(
        self, request: suggestions_pb2.ListSuggestionsRequest, context: "Context[Any, Any]"
    ) -> suggestions_pb2.ListSuggestionsResponse:
        """List suggestions."""
        session = await self._callers.session(request.session_id)
        article_id, state = await self._committer.open(session)
        limit = request.limit if request.HasField("limit") else limits.SUGGESTIONS_A_PAGE
        if not 1 <= limit <= limits.SUGGESTIONS_A_PAGE:
            raise failure(SCHEMA, "/limit", f"must be 1 to {limits.SUGGESTIONS_A_PAGE}")
        page = await self._suggestions.page(article_id, request.after_id, limit + 1)
        names = await self._names_of({suggestion.user_id for suggestion in page})
        messages = await asyncio.to_thread(
            _messages, page[:limit], state.document, session.user_id, names, self._new_id
        )
        return suggestions_pb2.ListSuggestionsResponse(
            suggestions=messages, has_more=len(page) > limit, revision=state.revision
        )

    async def AcceptSuggestion(
        self, request: suggestions_pb2.AcceptSuggestionRequest, context: "Context[Any, Any]"
    ) -> suggestions_pb2.AcceptSuggestionResponse:
        """Make a suggested edit."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        self._reserve.check()
        repeatable = RepeatableRequest.of(request)
        if repeatable is not None:
            result = await self._committer.result_of(session, repeatable)
            if result is not None:
                return suggestions_pb2.AcceptSuggestionResponse(revision=result.revision)
        suggestion = await self._suggestions.get(article_id, request.suggestion_id)
        revision = request.if_revision if request.HasField("if_revision") else None
        result = await self._committer.edit(
            session,
            AcceptSuggestion(suggestion, self._new_id),
            EditConditions(revision, suggestion_id=suggestion.id),
            repeatable,
        )
        return suggestions_pb2.AcceptSuggestionResponse(revision=result.revision)

    async def RejectSuggestion(
        self, request: suggestions_pb2.RejectSuggestionRequest, context: "Context[Any, Any]"
    ) -> suggestions_pb2.RejectSuggestionResponse:
        """Delete a suggestion."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        repeatable = RepeatableRequest.of(request)
        await self._suggestions.reject(
            article_id, session.user_id, request.suggestion_id, repeatable
        )
        return suggestions_pb2.RejectSuggestionResponse()


def _messages(
    page: Sequence[StoredSuggestion],
    document: Document,
    user_id: str,
    names: Mapping[str, str],
    new_id: NewId,
) -> list[suggestions_pb2.Suggestion]:
    renderer = ElementRenderer(document)
    messages = []
    for suggestion in page:
        accepted: Document | None = None
        with suppress(EditError):
            accepted = AcceptSuggestion(suggestion, new_id).apply(document).document
        patch = suggestion.patch
        later = renderer if accepted is None else ElementRenderer(accepted)
        messages.append(
            suggestions_pb2.Suggestion(
                id=suggestion.id,
                user_id=suggestion.user_id,
                user_name=names.get(suggestion.user_id, ""),
                is_own=suggestion.user_id == user_id,
                created_at_ms=suggestion.created_at_ms,
                revision=suggestion.revision,
                edit=suggestion.kind,
                is_stale=accepted is None,
                blocks=_blocks(suggestion, (document, renderer), (accepted, later)),
                reference_ids=list(patch.references),
                changes_style=patch.style is not None,
                changes_properties=patch.properties is not None,
            )
        )
    return messages


_Rendered = tuple[Document | None, ElementRenderer]


def _blocks(
    suggestion: StoredSuggestion, before: _Rendered, after: _Rendered
) -> Iterator[suggestions_pb2.SuggestedBlock]:
    """Yield the blocks that a suggestion changes, with their Markdown before and after."""
    patch = suggestion.patch
    inserted: dict[str, tuple[str, Element | None]] = {}
    for run in patch.runs:
        after_id = run.after_id
        for block in run.blocks:
            block_id = block if isinstance(block, str) else block.id
            inserted[block_id] = after_id, None if isinstance(block, str) else block
            after_id = block_id
    for block_id in dict.fromkeys((*patch.changed, *patch.removed, *inserted)):
        message = suggestions_pb2.SuggestedBlock(block_id=block_id)
        if (text := _markdown(before, block_id)) is not None:
            message.before = text
        new = patch.changed.get(block_id)
        if block_id in inserted:
            message.after_id, new = inserted[block_id]
        text = _markdown(after, block_id)
        if text is None and new is not None:
            text = after[1].block(new)
        if text is not None:
            message.after = text
        yield message


def _markdown(rendered: _Rendered, block_id: str) -> str | None:
    document, renderer = rendered
    element = None if document is None else document.element(block_id)
    return None if element is None else renderer.block(element)
