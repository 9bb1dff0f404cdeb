"""From checked requests to calls of the service.

Where fields are themselves the change, those that were sent go on as they are: null is not
absence. Whether they are enough, or too many, is the service's to say.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from facade.dialects.articles import bodies
from facade.dialects.articles.errors import Code, refused
from facade.dialects.articles.reading import pointer, to_json
from gateway.articles.v1 import articles_pb2 as pb

# The fields of text/replace that say what the block is to hold.
_CONTENT = ("children", "equation", "code", "language", "image", "author", "institution")
_BLOCK_STYLE = frozenset({"sessionId", "blockId", "ifRevision"})
_LEAF_STYLE = _BLOCK_STYLE | {"leafPath"}
# No document is as wide and as deep as that, so what lies beyond means the same.
_WIDEST = 2**32 - 1
_DEEPEST = 64


def create_session(body: bodies.CreateSession) -> pb.CreateSessionRequest:
    """Open a document."""
    return pb.CreateSessionRequest(article_id=body.docId)


def destroy_session(body: bodies.OfSession) -> pb.DestroySessionRequest:
    """End a session."""
    return pb.DestroySessionRequest(session_id=body.sessionId)


def list_articles(body: bodies.ListArticles) -> pb.ListArticlesRequest:
    """List groups and documents."""
    return pb.ListArticlesRequest()


def create_article(body: bodies.CreateArticle) -> pb.CreateArticleRequest:
    """Make a document."""
    return pb.CreateArticleRequest(group_id=body.group or 0, name=body.name or "")


def delete_article(body: bodies.DeleteArticle) -> pb.DeleteArticleRequest:
    """Delete a document."""
    return pb.DeleteArticleRequest(article_id=body.docId)


def read_article(body: bodies.OfSession) -> pb.ReadArticleRequest:
    """Read a document."""
    return pb.ReadArticleRequest(session_id=body.sessionId)


def read_block(body: bodies.ReadBlock) -> pb.ReadBlockRequest:
    """Read a block."""
    return pb.ReadBlockRequest(session_id=body.sessionId, block_id=body.blockId)


def insert_blocks(body: bodies.InsertBlocks) -> pb.InsertBlocksRequest:
    """Insert blocks."""
    return pb.InsertBlocksRequest(
        session_id=body.sessionId,
        path=_indices(body.path),
        blocks=to_json(body.blocks, "/blocks"),
        if_revision=body.ifRevision,
    )


def delete_block(body: bodies.DeleteBlock) -> pb.DeleteBlockRequest:
    """Delete an element."""
    return pb.DeleteBlockRequest(
        session_id=body.sessionId, block_id=body.blockId, if_revision=body.ifRevision
    )


def replace_text(body: bodies.ReplaceText) -> pb.ReplaceTextRequest:
    """Replace what a block holds."""
    given = _given(body)
    content = {name: given[name] for name in _CONTENT if name in given}
    return pb.ReplaceTextRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        fields=to_json(content, ""),
        if_revision=body.ifRevision,
    )


def append_text(body: bodies.AppendText) -> pb.AppendTextRequest:
    """Append text to a block."""
    return pb.AppendTextRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        text=to_json(body.text, "/text"),
        if_revision=body.ifRevision,
    )


def cite(body: bodies.Cite) -> pb.CiteRequest:
    """Set or clear citations."""
    return pb.CiteRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        leaf_path=_indices(body.leafPath or ()),
        reference_id=body.cite,
        if_revision=body.ifRevision,
    )


def add_reference(body: bodies.AddReference) -> pb.AddReferenceRequest:
    """Add a reference."""
    return pb.AddReferenceRequest(
        session_id=body.sessionId,
        reference=to_json(body.reference, "/reference"),
        if_revision=body.ifRevision,
    )


def update_reference(body: bodies.UpdateReference) -> pb.UpdateReferenceRequest:
    """Change a reference."""
    return pb.UpdateReferenceRequest(
        session_id=body.sessionId,
        reference=to_json(body.reference, "/reference"),
        if_revision=body.ifRevision,
    )


def delete_reference(body: bodies.DeleteReference) -> pb.DeleteReferenceRequest:
    """Delete a reference."""
    return pb.DeleteReferenceRequest(
        session_id=body.sessionId, reference_id=body.referenceId, if_revision=body.ifRevision
    )


def set_block_style(body: bodies.SetBlockStyle) -> pb.SetBlockStyleRequest:
    """Change a block's properties."""
    return pb.SetBlockStyleRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        properties=to_json(_changes(body, _BLOCK_STYLE), ""),
        if_revision=body.ifRevision,
    )


def set_leaf_style(body: bodies.SetLeafStyle) -> pb.SetLeafStyleRequest:
    """Change the marks of leaves."""
    return pb.SetLeafStyleRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        leaf_path=_indices(body.leafPath or ()),
        marks=to_json(_changes(body, _LEAF_STYLE), ""),
        if_revision=body.ifRevision,
    )


def set_article_style(body: bodies.SetArticleStyle) -> pb.SetArticleStyleRequest:
    """Merge a style into the document's.

    Raises:
        GatewayError: 40003, there is a field that nobody knows.
    """
    for unknown in body.model_extra or ():
        raise refused(Code.SCHEMA, pointer([unknown]), "is not a known field")
    return pb.SetArticleStyleRequest(
        session_id=body.sessionId,
        style=to_json(body.style, "/style"),
        if_revision=body.ifRevision,
    )


def _indices(path: Sequence[int]) -> list[int]:
    return [min(index, _WIDEST) for index in path[:_DEEPEST]]


def _changes(body: BaseModel, own: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in _given(body).items() if name not in own}


def _given(body: BaseModel) -> dict[str, Any]:
    declared = (name for name in type(body).model_fields if name in body.model_fields_set)
    return {**{name: getattr(body, name) for name in declared}, **(body.model_extra or {})}
