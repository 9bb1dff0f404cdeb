"""Wire types of the `data` of HTTP responses, and translation of gRPC responses to them.

Blocks, styles and references are JSON already, and are passed on unchanged.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from facade.dialects.articles import bodies
from gateway.articles.v1 import articles_pb2 as pb
from services.common.articles.blocks import Block, Reference, TableCell
from services.common.articles.styles import ArticleStyle

OK = 1

# The default of a field that may be omitted.
_ABSENT: Any = None

Revision = Annotated[int, Field(description="Number of operations committed to the document.")]
UnixSeconds = Annotated[int, Field(description="Unix seconds.")]

_PERMISSIONS = {pb.PERMISSION_PRIVATE: "private", pb.PERMISSION_GROUP_ONLY: "group-only"}


def render(data: Mapping[str, object]) -> bytes:
    """Return the body of a successful response."""
    return orjson.dumps({"code": OK, "data": data})


class _Answer(BaseModel):
    model_config = ConfigDict(defer_build=True)


class Session(_Answer):
    """An open document."""

    sessionId: str
    blockCount: Annotated[int, Field(description="Number of top-level blocks.")]
    reused: Annotated[
        bool, Field(description="Whether an existing session of the caller was reused.")
    ]
    revision: Revision


class Done(_Answer):
    """Success."""

    ok: Literal[True]


class Edited(Done):
    """Success of an edit, which is durable."""

    revision: Revision


class SharePermission(_Answer):
    """The permissions of a document."""

    operation: Annotated[bool, Field(description="Whether the caller may edit the document.")]
    permission: Annotated[
        Literal["private", "group-only"],
        Field(description="Who can read and edit the document: its creator, or its group."),
    ]


class ArticleNode(_Answer):
    """A document in a list."""

    outer_id: Annotated[str, Field(description="Id of the document.")]
    name: str
    group: int
    sharePermission: SharePermission
    children: Annotated[list[Any], Field(max_length=0)]
    fileholderDeep: Annotated[int, Field(description="Depth in the group; 0 at the group's root.")]
    time_create: UnixSeconds


class ArticleGroup(_Answer):
    """A group and its documents; group 0 is the private one."""

    group_id: int
    name: str
    isCreator: bool
    articles: list[ArticleNode]
    time_create: UnixSeconds


class Articles(_Answer):
    """The caller's groups, the private one first."""

    articles: list[ArticleGroup]


class Created(_Answer):
    """The created document."""

    article: ArticleNode
    group: int


class Deleted(_Answer):
    """The deleted document."""

    article: Annotated[str, Field(description="Id of the document.")]


class BlockSummary(_Answer):
    """A block as Markdown."""

    id: str
    type: str
    text: str


class Document(_Answer):
    """A whole document."""

    blocks: list[BlockSummary]
    text: Annotated[str, Field(description="The document, or the requested blocks, as Markdown.")]
    style: ArticleStyle
    reference: list[Reference]
    version: Annotated[str, Field(description="Version of the document format.")]
    revision: Revision


class WholeBlock(_Answer):
    """One block."""

    block: Block | TableCell
    path: Annotated[list[int], Field(description="Child indices from the root.")]
    style: Annotated[
        dict[str, Any],
        Field(description="Effective style of the block, including the document's style."),
    ]
    text: Annotated[str, Field(description="The block as Markdown.")]
    revision: Revision


class Blocks(_Answer):
    """Blocks, all of one revision."""

    blocks: Annotated[list[WholeBlock], Field(description="In the order of the requested ids.")]
    revision: Revision


class DocumentChanges(_Answer):
    """The changes of a document; only the revision if there are none."""

    revision: Revision
    order: Annotated[list[str], Field(description="Ids of all top-level blocks, in order.")] = (
        _ABSENT
    )
    changed: Annotated[
        list[str],
        Field(
            description="Ids of blocks that are new, or whose content, style or Markdown changed."
        ),
    ] = _ABSENT
    style: ArticleStyle = _ABSENT
    reference: list[Reference] = _ABSENT
    cited: Annotated[
        list[str],
        Field(
            description="Ids of the cited references, in the order of their citation "
            "numbers, from 1."
        ),
    ] = _ABSENT


class Inserted(_Answer):
    """The inserted blocks."""

    ids: Annotated[list[str], Field(description="Ids of the inserted blocks, in order.")]
    revision: Revision


class TextEdited(_Answer):
    """The blocks in which texts were replaced."""

    changed: Annotated[list[str], Field(description="Ids of the changed blocks, in order.")]
    revision: Revision


class EditsApplied(_Answer):
    """The results of edits, and the revision after all of them."""

    results: Annotated[
        list[dict[str, Any]],
        Field(description="For each edit the data of its endpoint, without `revision`."),
    ]
    revision: Revision


class ReferenceAdded(_Answer):
    """The added reference."""

    id: str
    revision: Revision


class OutlineHeading(_Answer):
    """A block of the type title, h1, h2 or h3."""

    id: str
    path: Annotated[list[int], Field(description="Child indices from the root.")]
    type: str
    text: Annotated[str, Field(description="Plain text, at most 200 characters.")]
    words: Annotated[int, Field(description="Words in the blocks up to the next heading.")]


class Outline(_Answer):
    """The headings of a document."""

    headings: list[OutlineHeading]
    revision: Revision


class Place(_Answer):
    """A place of a text."""

    blockId: Annotated[str, Field(description="Id of the block, item or cell.")]
    offset: Annotated[int, Field(description="Position in its text, in characters.")]
    snippet: Annotated[str, Field(description="The text there, with some text around it.")]


class Places(_Answer):
    """The places of a text."""

    places: list[Place]
    hasMore: Annotated[bool, Field(description="Whether there are more.")]
    revision: Revision


class HistoryEntry(_Answer):
    """An edit in the history."""

    revision: Annotated[int, Field(description="The revision that it made.")]
    time: Annotated[int, Field(description="Unix milliseconds.")]
    own: Annotated[bool, Field(description="Whether the caller made it.")]
    operation: Annotated[
        str,
        Field(
            description="insert, delete, replace, append, restore, cite, style-leaf, style-block, "
            "style-article, add-reference, update-reference, delete-reference, sequence (several "
            "edits), undo or redo."
        ),
    ]
    reversed: Annotated[
        int, Field(description="For undo and redo: the revision that it reverses.")
    ] = _ABSENT


class HistoryPage(_Answer):
    """Edits, the newest first."""

    entries: list[HistoryEntry]
    hasMore: Annotated[bool, Field(description="Whether there are older ones.")]


class Difference(_Answer):
    """A block that differs between two revisions."""

    blockId: str
    before: Annotated[str, Field(description="Its Markdown; omitted for a new block.")] = _ABSENT
    after: Annotated[str, Field(description="Its Markdown; omitted for a removed one.")] = _ABSENT


class Differences(_Answer):
    """Differences between two revisions."""

    blocks: Annotated[
        list[Difference],
        Field(description="New and changed blocks in order, then removed ones; at most 500."),
    ]
    hasMore: Annotated[bool, Field(description="Whether there are more.")]


Data = dict[str, object]


def session(_: bodies.CreateSession, answer: pb.CreateSessionResponse) -> Data:
    """Return the data of session/create."""
    return {
        "sessionId": answer.session_id,
        "blockCount": answer.block_count,
        "reused": answer.reused,
        "revision": answer.revision,
    }


def done(_: bodies.OfSession, answer: pb.DestroySessionResponse) -> Data:
    """Return the data of session/destroy."""
    return {"ok": True}


def edited(_: bodies.EditBody, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of an edit that creates no ids."""
    return {"ok": True, "revision": answer.revision}


def articles(_: bodies.ListArticles, answer: pb.ListArticlesResponse) -> Data:
    """Return the data of doc/list."""
    return {"articles": [_group(group) for group in answer.groups]}


def created(_: bodies.CreateArticle, answer: pb.CreateArticleResponse) -> Data:
    """Return the data of doc/create."""
    return {"article": _node(answer.article), "group": answer.article.group_id}


def deleted(body: bodies.DeleteArticle, answer: pb.DeleteArticleResponse) -> Data:
    """Return the data of doc/delete."""
    return {"article": body.docId}


def document(_: bodies.ReadArticle, answer: pb.ReadArticleResponse) -> Data:
    """Return the data of doc/read."""
    return {
        "blocks": [
            {"id": block.id, "type": block.type, "text": block.text} for block in answer.blocks
        ],
        "text": answer.text,
        "style": orjson.Fragment(answer.style),
        "reference": orjson.Fragment(answer.references),
        "version": answer.version,
        "revision": answer.revision,
    }


def whole_block(_: bodies.ReadBlock, answer: pb.ReadBlockResponse) -> Data:
    """Return the data of doc/read-block."""
    return _whole_block(answer)


def _whole_block(answer: pb.ReadBlockResponse) -> Data:
    return {
        "block": orjson.Fragment(answer.block),
        "path": list(answer.path),
        "style": orjson.Fragment(answer.style),
        "text": answer.text,
        "revision": answer.revision,
    }


def blocks(_: bodies.ReadBlocks, answer: pb.ReadBlocksResponse) -> Data:
    """Return the data of doc/read-blocks."""
    return {
        "blocks": [_whole_block(block) for block in answer.blocks],
        "revision": answer.revision,
    }


def changes(_: bodies.ReadChanges, answer: pb.ReadChangesResponse) -> Data:
    """Return the data of doc/changes."""
    if not answer.HasField("changes"):
        return {"revision": answer.revision}
    return {
        "revision": answer.revision,
        "order": list(answer.changes.order),
        "changed": list(answer.changes.changed),
        "style": orjson.Fragment(answer.changes.style),
        "reference": orjson.Fragment(answer.changes.references),
        "cited": list(answer.changes.cited),
    }


def outline(_: bodies.OfSession, answer: pb.ReadOutlineResponse) -> Data:
    """Return the data of doc/outline."""
    return {
        "headings": [
            {
                "id": heading.block_id,
                "path": list(heading.path),
                "type": heading.type,
                "text": heading.text,
                "words": heading.words,
            }
            for heading in answer.headings
        ],
        "revision": answer.revision,
    }


def places(_: bodies.FindText, answer: pb.FindTextResponse) -> Data:
    """Return the data of doc/find."""
    return {
        "places": [
            {"blockId": place.block_id, "offset": place.offset, "snippet": place.snippet}
            for place in answer.places
        ],
        "hasMore": answer.has_more,
        "revision": answer.revision,
    }


def history(_: bodies.ListHistory, answer: pb.ListHistoryResponse) -> Data:
    """Return the data of history/list."""
    return {
        "entries": [_history_entry(entry) for entry in answer.entries],
        "hasMore": answer.has_more,
    }


def _history_entry(entry: pb.HistoryEntry) -> Data:
    data: Data = {
        "revision": entry.revision,
        "time": entry.at_ms,
        "own": entry.is_own,
        "operation": entry.operation,
    }
    if entry.reversed_revision:
        data["reversed"] = entry.reversed_revision
    return data


def reversed_edit(
    _: bodies.OfSession, answer: pb.ReverseEditResponse | pb.RestoreRevisionResponse
) -> Data:
    """Return the data of history/undo, history/redo and history/restore."""
    return {"ok": True, "revision": answer.revision}


def differences(_: bodies.ReadDifferences, answer: pb.ReadDifferencesResponse) -> Data:
    """Return the data of history/diff."""
    return {"blocks": [_difference(one) for one in answer.blocks], "hasMore": answer.has_more}


def _difference(difference: pb.BlockDifference) -> Data:
    data: Data = {"blockId": difference.block_id}
    if difference.HasField("before"):
        data["before"] = difference.before
    if difference.HasField("after"):
        data["after"] = difference.after
    return data


def inserted(_: bodies.InsertBlocks, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of block/insert."""
    return {"ids": list(answer.ids), "revision": answer.revision}


def text_edited(_: bodies.EditText, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of block/text/edit."""
    return {"changed": list(answer.ids), "revision": answer.revision}


def reference_added(_: bodies.AddReference, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of reference/add."""
    return {"id": answer.ids[0], "revision": answer.revision}


def _group(group: pb.ArticleGroup) -> Data:
    return {
        "group_id": group.group_id,
        "name": group.name,
        "isCreator": group.is_creator,
        "articles": [_node(article) for article in group.articles],
        "time_create": group.created_at,
    }


def _node(article: pb.Article) -> Data:
    return {
        "outer_id": article.id,
        "name": article.name,
        "group": article.group_id,
        "sharePermission": {
            "operation": article.may_edit,
            "permission": _PERMISSIONS[article.permission],
        },
        "children": [],
        "fileholderDeep": article.depth,
        "time_create": article.created_at,
    }
