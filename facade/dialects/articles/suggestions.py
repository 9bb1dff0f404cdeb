"""Suggested edits: requests, responses, and their translation."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from facade.dialects.articles import answers
from facade.dialects.articles.answer_types import Revision
from facade.dialects.articles.bodies import INT64, OfSession, RepeatableBody
from facade.dialects.articles.comments import CommentAuthor
from gateway.articles.v1 import suggestions_pb2

# The default of a field that may be omitted.
_ABSENT: Any = None
_SuggestionId = Annotated[
    str, Field(description="Id of a suggestion, from an edit with `suggest` or suggestion/list.")
]
# The field of `Edit` that an endpoint sets, where that is not named like its path.
_ENDPOINTS = {
    "insert_blocks": "block/insert",
    "delete_block": "block/delete",
    "replace_text": "block/text/replace",
    "append_text": "block/text/append",
    "cite": "block/cite",
    "add_reference": "reference/add",
    "update_reference": "reference/update",
    "delete_reference": "reference/delete",
    "set_block_style": "block/style",
    "set_leaf_style": "style/leaf",
    "set_article_style": "style/article",
    "set_properties": "doc/properties",
    "edit_text": "block/text/edit",
    "apply_edits": "edits/apply",
    "move_block": "block/move",
    "duplicate_block": "block/duplicate",
    "convert_blocks": "block/convert",
    "edit_table": "table/edit",
    "import_references": "reference/import",
    "write_markdown": "doc/write",
    "import_article": "doc/import",
}


class ListSuggestions(OfSession):
    """Names a page of suggestions."""

    after: str = Field("", description="Id of a suggestion: only those made after it.")
    limit: Annotated[int, Field(ge=1, le=50)] = 50


class AcceptSuggestion(RepeatableBody):
    """Names a suggestion to accept."""

    suggestionId: _SuggestionId
    ifRevision: Annotated[int, Field(ge=0, lt=INT64)] | None = Field(
        None, description="As in an edit."
    )


class RejectSuggestion(RepeatableBody):
    """Names a suggestion to reject."""

    suggestionId: _SuggestionId


class _Answer(BaseModel):
    model_config = ConfigDict(defer_build=True)


class SuggestedBlock(_Answer):
    """A top-level block that a suggestion changes."""

    blockId: str
    before: Annotated[str, Field(description="Its Markdown; omitted for a new block.")] = _ABSENT
    after: Annotated[
        str, Field(description="Its Markdown once accepted; omitted for a block it deletes.")
    ] = _ABSENT
    afterId: Annotated[
        str,
        Field(description="For new and moved blocks: the block before; empty at the beginning."),
    ] = _ABSENT


class Suggestion(_Answer):
    """A pending edit."""

    id: str
    author: CommentAuthor
    own: Annotated[bool, Field(description="Whether the caller is the author.")]
    time: Annotated[int, Field(description="Unix milliseconds.")]
    revision: Annotated[int, Field(description="The revision that it was made for.")]
    endpoint: Annotated[str, Field(description="The edit, such as `block/insert`.")]
    stale: Annotated[
        bool,
        Field(description="Whether what it changes has changed since: it cannot be accepted."),
    ]
    blocks: list[SuggestedBlock]
    references: Annotated[list[str], Field(description="Ids of the references that it changes.")]
    style: Annotated[bool, Field(description="Whether it changes the style of the document.")]
    properties: Annotated[
        bool, Field(description="Whether it changes the properties of the document.")
    ]


class Suggestions(_Answer):
    """A page of suggestions."""

    suggestions: Annotated[list[Suggestion], Field(description="The oldest first.")]
    hasMore: Annotated[bool, Field(description="Whether there are more.")]
    revision: Revision


def list_suggestions(body: ListSuggestions) -> suggestions_pb2.ListSuggestionsRequest:
    """Return the request to list suggestions."""
    return suggestions_pb2.ListSuggestionsRequest(
        session_id=body.sessionId, after_id=body.after, limit=body.limit
    )


def accept_suggestion(body: AcceptSuggestion) -> suggestions_pb2.AcceptSuggestionRequest:
    """Return the request to accept a suggestion."""
    return suggestions_pb2.AcceptSuggestionRequest(
        session_id=body.sessionId,
        suggestion_id=body.suggestionId,
        if_revision=body.ifRevision,
        request_id=body.requestId,
    )


def reject_suggestion(body: RejectSuggestion) -> suggestions_pb2.RejectSuggestionRequest:
    """Return the request to reject a suggestion."""
    return suggestions_pb2.RejectSuggestionRequest(
        session_id=body.sessionId,
        suggestion_id=body.suggestionId,
        request_id=body.requestId,
    )


def accepted(_: AcceptSuggestion, answer: suggestions_pb2.AcceptSuggestionResponse) -> answers.Data:
    """Return the data of suggestion/accept."""
    return {"ok": True, "revision": answer.revision}


def rejected(_: RejectSuggestion, answer: suggestions_pb2.RejectSuggestionResponse) -> answers.Data:
    """Return the data of suggestion/reject."""
    return {"ok": True}


def suggestions(
    _: ListSuggestions, answer: suggestions_pb2.ListSuggestionsResponse
) -> answers.Data:
    """Return the data of suggestion/list."""
    return {
        "suggestions": [_suggestion(suggestion) for suggestion in answer.suggestions],
        "hasMore": answer.has_more,
        "revision": answer.revision,
    }


def _suggestion(suggestion: suggestions_pb2.Suggestion) -> answers.Data:
    return {
        "id": suggestion.id,
        "author": {"user": suggestion.user_id, "name": suggestion.user_name},
        "own": suggestion.is_own,
        "time": suggestion.created_at_ms,
        "revision": suggestion.revision,
        "endpoint": _ENDPOINTS.get(suggestion.edit, suggestion.edit),
        "stale": suggestion.is_stale,
        "blocks": [_block(block) for block in suggestion.blocks],
        "references": list(suggestion.reference_ids),
        "style": suggestion.changes_style,
        "properties": suggestion.changes_properties,
    }


def _block(block: suggestions_pb2.SuggestedBlock) -> answers.Data:
    data: answers.Data = {"blockId": block.block_id}
    if block.HasField("before"):
        data["before"] = block.before
    if block.HasField("after"):
        data["after"] = block.after
    if block.HasField("after_id"):
        data["afterId"] = block.after_id
    return data
