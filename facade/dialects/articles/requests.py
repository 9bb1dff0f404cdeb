"""Translate validated requests into messages of the article service.

Where the fields themselves are the change, the sent fields are passed on unchanged, as null differs
from absence. The service checks their number and combination.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from facade.dialects.articles import bodies, edit_bodies
from facade.dialects.articles.errors import Code, request_error
from facade.dialects.articles.reading import pointer, to_json
from gateway.articles.v1 import articles_pb2, edits_pb2
from gateway.articles.v1.edits_pb2 import Edit

# Fields of text/replace with the new content of a block.
_CONTENT = (
    *("children", "equation", "code", "language", "image", "author", "institution"),
    *("label", "caption", "align", "start"),
)
_BLOCK_STYLE = frozenset(
    {"sessionId", "requestId", "blockId", "ifRevision", "ifBlockRevision", "suggest"}
)
_LEAF_STYLE = _BLOCK_STYLE | {"leafPath", "anchorId"}
# Larger than any document: indices beyond it are clamped and not found either.
_MAX_INDEX = 2**32 - 1
_MAX_DEPTH = 64


def create_session(body: bodies.CreateSession) -> articles_pb2.CreateSessionRequest:
    """Return the request to open a document."""
    return articles_pb2.CreateSessionRequest(article_id=body.docId, client_id=body.clientId)


def destroy_session(body: bodies.OfSession) -> articles_pb2.DestroySessionRequest:
    """Return the request to end a session."""
    return articles_pb2.DestroySessionRequest(session_id=body.sessionId)


def list_articles(body: bodies.ListArticles) -> articles_pb2.ListArticlesRequest:
    """Return the request to list groups and documents."""
    return articles_pb2.ListArticlesRequest()


def create_article(body: bodies.CreateArticle) -> articles_pb2.CreateArticleRequest:
    """Return the request to create a document."""
    return articles_pb2.CreateArticleRequest(
        group_id=body.group or 0,
        name=body.name or "",
        source_id=body.source,
        copies_all=body.content == "all",
    )


def delete_article(body: bodies.DeleteArticle) -> articles_pb2.DeleteArticleRequest:
    """Return the request to delete a document."""
    return articles_pb2.DeleteArticleRequest(article_id=body.docId)


def read_article(body: bodies.ReadArticle) -> articles_pb2.ReadArticleRequest:
    """Return the request to read a document, or some of its blocks."""
    return articles_pb2.ReadArticleRequest(
        session_id=body.sessionId,
        first=body.first,
        limit=body.limit,
        block_ids=body.blockIds,
        without_images=body.images == "none",
        with_keys=body.citations == "key",
    )


def read_block(body: bodies.ReadBlock) -> articles_pb2.ReadBlockRequest:
    """Return the request to read a block."""
    return articles_pb2.ReadBlockRequest(session_id=body.sessionId, block_id=body.blockId)


def read_blocks(body: bodies.ReadBlocks) -> articles_pb2.ReadBlocksRequest:
    """Return the request to read several blocks."""
    return articles_pb2.ReadBlocksRequest(session_id=body.sessionId, block_ids=body.blockIds)


def read_image(body: bodies.ReadImage) -> articles_pb2.ReadImageRequest:
    """Return the request to read a picture."""
    return articles_pb2.ReadImageRequest(
        session_id=body.sessionId, block_id=body.blockId, index=body.index
    )


def read_changes(body: bodies.ReadChanges) -> articles_pb2.ReadChangesRequest:
    """Return the request to read the changes since a revision."""
    return articles_pb2.ReadChangesRequest(
        session_id=body.sessionId, since=body.since, wait_seconds=body.waitSeconds
    )


def list_sessions(body: bodies.OfSession) -> articles_pb2.ListSessionsRequest:
    """Return the request to list who has a document open."""
    return articles_pb2.ListSessionsRequest(session_id=body.sessionId)


def read_outline(body: bodies.OfSession) -> articles_pb2.ReadOutlineRequest:
    """Return the request to read the headings."""
    return articles_pb2.ReadOutlineRequest(session_id=body.sessionId)


def find_text(body: bodies.FindText) -> articles_pb2.FindTextRequest:
    """Return the request to find a text."""
    return articles_pb2.FindTextRequest(
        session_id=body.sessionId, query=body.query, limit=body.limit, is_regex=body.regex
    )


def list_history(body: bodies.ListHistory) -> articles_pb2.ListHistoryRequest:
    """Return the request to list edits."""
    return articles_pb2.ListHistoryRequest(
        session_id=body.sessionId, before=body.before, limit=body.limit
    )


def undo(body: bodies.RepeatableBody) -> articles_pb2.ReverseEditRequest:
    """Return the request to undo the caller's last edit."""
    return articles_pb2.ReverseEditRequest(session_id=body.sessionId, request_id=body.requestId)


def redo(body: bodies.RepeatableBody) -> articles_pb2.ReverseEditRequest:
    """Return the request to redo what the caller undid last."""
    return articles_pb2.ReverseEditRequest(
        session_id=body.sessionId, redo=True, request_id=body.requestId
    )


def restore_revision(body: bodies.RestoreRevision) -> articles_pb2.RestoreRevisionRequest:
    """Return the request to restore a revision."""
    return articles_pb2.RestoreRevisionRequest(
        session_id=body.sessionId, revision=body.revision, request_id=body.requestId
    )


def read_differences(body: bodies.ReadDifferences) -> articles_pb2.ReadDifferencesRequest:
    """Return the request to compare two revisions."""
    return articles_pb2.ReadDifferencesRequest(
        session_id=body.sessionId, first=body.first, last=body.last
    )


def apply_edit(
    edit_of: Callable[[Any], Edit], body: edit_bodies.EditBody
) -> articles_pb2.ApplyEditRequest:
    """Return the request to apply the edit of a body in its session; `edit_of` translates it."""
    return articles_pb2.ApplyEditRequest(
        session_id=body.sessionId,
        if_revision=body.ifRevision,
        if_block_revision=getattr(body, "ifBlockRevision", None),
        dry_run=getattr(body, "dryRun", False),
        request_id=body.requestId,
        suggest=body.suggest,
        edit=edit_of(body),
    )


def insert_blocks(body: edit_bodies.InsertBlocks) -> Edit:
    """Return the edit of block/insert."""
    blocks = to_json(body.blocks, "/blocks")
    return Edit(insert_blocks=edits_pb2.InsertBlocks(path=_indices(body.path), blocks=blocks))


def write_markdown(body: edit_bodies.WriteMarkdown) -> Edit:
    """Return the edit of doc/write."""
    edit = edits_pb2.WriteMarkdown(markdown=body.markdown, position=body.position, files=body.files)
    return Edit(write_markdown=edit)


def delete_block(body: edit_bodies.DeleteBlock) -> Edit:
    """Return the edit of block/delete."""
    return Edit(delete_block=edits_pb2.DeleteBlock(block_id=body.blockId))


def move_block(body: edit_bodies.MoveBlock) -> Edit:
    """Return the edit of block/move."""
    return Edit(
        move_block=edits_pb2.MoveBlock(
            block_id=body.blockId,
            with_section=body.section,
            path=_indices(body.path or ()),
            before_id=body.beforeId,
        )
    )


def duplicate_block(body: edit_bodies.DuplicateBlock) -> Edit:
    """Return the edit of block/duplicate."""
    return Edit(
        duplicate_block=edits_pb2.DuplicateBlock(
            block_id=body.blockId,
            with_section=body.section,
            path=_indices(body.path or ()),
            before_id=body.beforeId,
        )
    )


def convert_blocks(body: edit_bodies.ConvertBlocks) -> Edit:
    """Return the edit of block/convert."""
    return Edit(convert_blocks=edits_pb2.ConvertBlocks(block_ids=body.blockIds, type=body.type))


def edit_table(body: edit_bodies.EditTable) -> Edit:
    """Return the edit of table/edit."""
    action = body.action.upper().replace("-", "_")
    return Edit(
        edit_table=edits_pb2.EditTable(
            block_id=body.blockId,
            action=edits_pb2.TableAction.Value(f"TABLE_ACTION_{action}"),
            row=body.row,
            column=body.column,
            rows=body.rows,
            columns=body.columns,
            align=body.align,
        )
    )


def replace_text(body: edit_bodies.ReplaceText) -> Edit:
    """Return the edit of block/text/replace.

    Raises:
        GatewayError: 40003, another type is given.
    """
    sent = _sent(body)
    if "type" in sent:
        problem = "the type of a block stays; delete the block and insert one of the other type"
        raise request_error(Code.SCHEMA, "/type", problem)
    fields = to_json({name: sent[name] for name in _CONTENT if name in sent}, "")
    return Edit(replace_text=edits_pb2.ReplaceText(block_id=body.blockId, fields=fields))


def append_text(body: edit_bodies.AppendText) -> Edit:
    """Return the edit of block/text/append."""
    text = to_json(body.text, "/text")
    return Edit(append_text=edits_pb2.AppendText(block_id=body.blockId, text=text))


def edit_text(body: edit_bodies.EditText) -> Edit:
    """Return the edit of block/text/edit."""
    edits = [
        edits_pb2.TextReplacement(old=edit.old, new=edit.new, all=edit.all) for edit in body.edits
    ]
    return Edit(edit_text=edits_pb2.EditText(edits=edits, block_id=body.blockId))


def cite(body: edit_bodies.Cite) -> Edit:
    """Return the edit of block/cite."""
    by_id = body.cite is None or isinstance(body.cite, str)
    return Edit(
        cite=edits_pb2.Cite(
            block_id=body.blockId,
            leaf_path=_indices(body.leafPath or ()),
            anchor_id=body.anchorId,
            reference_id=body.cite if isinstance(body.cite, str) else None,
            citations=b"" if by_id else to_json(body.cite, "/cite"),
        )
    )


def add_reference(body: edit_bodies.AddReference) -> Edit:
    """Return the edit of reference/add."""
    reference = to_json(body.reference, "/reference")
    return Edit(add_reference=edits_pb2.AddReference(reference=reference))


def import_references(body: edit_bodies.ImportReferences) -> Edit:
    """Return the edit of reference/import."""
    return Edit(
        import_references=edits_pb2.ImportReferences(
            format=_bibliography_format(body.format), text=body.text
        )
    )


def export_references(body: bodies.ExportReferences) -> articles_pb2.ExportReferencesRequest:
    """Return the request to export references."""
    return articles_pb2.ExportReferencesRequest(
        session_id=body.sessionId,
        format=_bibliography_format(body.format),
        reference_ids=body.referenceIds,
    )


def export_article(body: bodies.ExportArticle) -> articles_pb2.ExportArticleRequest:
    """Return the request to export a document."""
    return articles_pb2.ExportArticleRequest(
        session_id=body.sessionId,
        format=_document_format(body.format),
        style=body.style or "",
        as_file=body.target == "file",
    )


def import_article(body: bodies.ImportArticle) -> articles_pb2.ImportArticleRequest:
    """Return the request to import a document.

    Raises:
        GatewayError: 40004, there is not exactly one of text and fileId.
    """
    if (body.text is None) == (body.fileId is None):
        raise request_error(Code.FIELDS, "", "exactly one of text and fileId is required")
    request = articles_pb2.ImportArticleRequest(
        session_id=body.sessionId,
        format=_document_format(body.format),
        position=body.position,
        if_revision=body.ifRevision,
        request_id=body.requestId,
        suggest=body.suggest,
        files=body.files,
    )
    if body.text is not None:
        request.text = body.text
    else:
        request.file_id = body.fileId or ""
    return request


def format_references(body: bodies.FormatReferences) -> articles_pb2.FormatReferencesRequest:
    """Return the request to format the references of a document."""
    return articles_pb2.FormatReferencesRequest(
        session_id=body.sessionId, style=body.style or "", locale=body.locale or ""
    )


def _document_format(name: str) -> articles_pb2.DocumentFormat.ValueType:
    value = name.upper().replace("-", "_")
    return articles_pb2.DocumentFormat.Value(f"DOCUMENT_FORMAT_{value}")


def _bibliography_format(name: str) -> edits_pb2.BibliographyFormat.ValueType:
    value = name.upper().replace("-", "_")
    return edits_pb2.BibliographyFormat.Value(f"BIBLIOGRAPHY_FORMAT_{value}")


def update_reference(body: edit_bodies.UpdateReference) -> Edit:
    """Return the edit of reference/update."""
    reference = to_json(body.reference, "/reference")
    return Edit(update_reference=edits_pb2.UpdateReference(reference=reference))


def delete_reference(body: edit_bodies.DeleteReference) -> Edit:
    """Return the edit of reference/delete."""
    return Edit(delete_reference=edits_pb2.DeleteReference(reference_id=body.referenceId))


def set_block_style(body: edit_bodies.SetBlockStyle) -> Edit:
    """Return the edit of block/style."""
    properties = to_json(_changes(body, _BLOCK_STYLE), "")
    return Edit(
        set_block_style=edits_pb2.SetBlockStyle(block_id=body.blockId, properties=properties)
    )


def set_leaf_style(body: edit_bodies.SetLeafStyle) -> Edit:
    """Return the edit of style/leaf."""
    return Edit(
        set_leaf_style=edits_pb2.SetLeafStyle(
            block_id=body.blockId,
            leaf_path=_indices(body.leafPath or ()),
            anchor_id=body.anchorId,
            marks=to_json(_changes(body, _LEAF_STYLE), ""),
        )
    )


def set_properties(body: edit_bodies.SetProperties) -> Edit:
    """Return the edit of doc/properties."""
    properties = to_json(body.properties, "/properties")
    return Edit(set_properties=edits_pb2.SetProperties(properties=properties))


def set_article_style(body: edit_bodies.SetArticleStyle) -> Edit:
    """Return the edit of style/article.

    Raises:
        GatewayError: 40003, a field is unknown.
    """
    for unknown in body.model_extra or ():
        raise request_error(Code.SCHEMA, pointer([unknown]), "is not a known field")
    return Edit(set_article_style=edits_pb2.SetArticleStyle(style=to_json(body.style, "/style")))


def _indices(path: Sequence[int]) -> list[int]:
    return [min(index, _MAX_INDEX) for index in path[:_MAX_DEPTH]]


def _changes(body: BaseModel, own: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in _sent(body).items() if name not in own}


def _sent(body: BaseModel) -> dict[str, Any]:
    declared = (name for name in type(body).model_fields if name in body.model_fields_set)
    return {**{name: getattr(body, name) for name in declared}, **(body.model_extra or {})}
