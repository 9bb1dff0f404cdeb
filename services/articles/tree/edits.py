"""Decoding of `Edit` messages into operations.

A caller sends a `gateway.articles.v1.Edit`; an `Operation` is applied and logged. All rules that do
not depend on the document are checked here. Pointers of errors name fields as in the HTTP API.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from gateway.articles.v1 import edits_pb2 as pb
from services.articles.bibliography.entries import Entries, Omission, SyntaxProblem
from services.articles.bibliography.formats import FORMATS
from services.articles.tree import schema
from services.articles.tree.document import Path
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.inline_markdown import parse_inline
from services.articles.tree.made_ids import with_made_ids
from services.articles.tree.nodes import CONTENT_KEYS, VOID_TYPES, Leaf, Node
from services.articles.tree.operations import (
    AddReference,
    AppendText,
    ApplyEdits,
    BlockPlace,
    Cite,
    ConvertBlocks,
    DeleteBlocks,
    DeleteReference,
    DocumentEdit,
    DuplicateBlock,
    EditTable,
    EditText,
    ImportReferences,
    InsertBlocks,
    MoveBlock,
    Replacement,
    ReplaceText,
    SetArticleStyle,
    SetBlockStyle,
    SetLeafStyle,
    SetProperties,
    UpdateReference,
    WriteMarkdown,
)
from services.articles.tree.operations.leaves import AnchoredPath, Target
from services.articles.tree.parsing import (
    NewId,
    check_leaf,
    parse_children,
    parse_cite,
    parse_content,
    parse_element,
    parse_leaf,
    parse_marks,
)
from services.articles.tree.picture_files import PictureFiles
from services.articles.tree.references import Reference, parse_patch, parse_reference
from services.articles.tree.style import check_article_style
from services.articles.tree.table_edits import TableEdit
from services.articles.tree.values import array, schema_error, string
from services.articles.tree.written_markdown import parse_blocks
from services.common.articles import limits
from services.common.articles.blocks import Properties

BIBLIOGRAPHY_FORMATS: Mapping[int, str] = {
    pb.BIBLIOGRAPHY_FORMAT_BIBTEX: "bibtex",
    pb.BIBLIOGRAPHY_FORMAT_BIBLATEX: "biblatex",
    pb.BIBLIOGRAPHY_FORMAT_RIS: "ris",
    pb.BIBLIOGRAPHY_FORMAT_CSL_JSON: "csl-json",
}
# The edits that bring Markdown.
_WITH_MARKDOWN = frozenset({"edit_text", "write_markdown", "apply_edits"})
# The fields of blocks beside their children that text/replace changes.
_FIELDS = (
    *(key for kind in VOID_TYPES for key in CONTENT_KEYS[kind]),
    *("label", "caption", "align", "start"),
)


def named_block(edit: pb.Edit) -> str:
    """Return the id of the block that an edit changes, or "" if it names none."""
    kind = edit.WhichOneof("kind")
    message = getattr(edit, kind) if kind else edit
    for name in ("block_id", "anchor_id"):
        if block_id := getattr(message, name, ""):
            return str(block_id)
    return ""


def read_edit(edit: pb.Edit, new_id: NewId) -> DocumentEdit:
    """Return the edit that a message describes.

    Args:
        edit: the caller's edit.
        new_id: returns an id that no element or reference ever had.

    Raises:
        EditError: the edit is invalid for every document.
    """
    kind = edit.WhichOneof("kind")
    if kind is None:
        raise EditError(EditErrorCode.FIELDS, "", "an edit is required")
    if kind in _WITH_MARKDOWN:
        _check_lengths(edit)
    return _READERS[kind](getattr(edit, kind), new_id)


def _check_lengths(edit: pb.Edit) -> None:
    """Check how much Markdown an edit, or all edits of one request, bring."""
    edits = edit.apply_edits.edits if edit.HasField("apply_edits") else (edit,)
    replaced = sum(
        len(one.old) + len(one.new) for single in edits for one in single.edit_text.edits
    )
    if replaced > limits.MARKDOWN:
        problem = f"texts to replace must have at most {limits.MARKDOWN} characters in all"
        raise schema_error("/edits", problem)
    if sum(len(one.write_markdown.markdown) for one in edits) > limits.MARKDOWN_TEXT:
        problem = f"Markdown must have at most {limits.MARKDOWN_TEXT} characters in all"
        raise schema_error("/markdown" if edit.HasField("write_markdown") else "/edits", problem)


def _insert_blocks(edit: pb.InsertBlocks, new_id: NewId) -> InsertBlocks:
    path = _path(edit.path, "/path")
    block_array = array(_json(edit.blocks, "/blocks"), "/blocks")
    if not 1 <= len(block_array) <= limits.BLOCKS_AN_INSERT:
        raise schema_error("/blocks", f"must contain 1 to {limits.BLOCKS_AN_INSERT} blocks")
    blocks = [
        parse_element(block, join_pointer("/blocks", index), 1, new_id, {})
        for index, block in enumerate(block_array)
    ]
    return InsertBlocks(path, tuple(blocks))


def _write_markdown(edit: pb.WriteMarkdown, new_id: NewId) -> WriteMarkdown:
    markdown = string(edit.markdown, "/markdown", limits.MARKDOWN_TEXT)
    files = PictureFiles(edit.files)
    written = parse_blocks(markdown, files, new_id)
    if not written.blocks and not written.properties:
        raise schema_error("/markdown", "must have some text")
    position = edit.position if edit.HasField("position") else None
    return WriteMarkdown(position, *written, files.pointers())


def _delete_block(edit: pb.DeleteBlock, new_id: NewId) -> DeleteBlocks:
    return DeleteBlocks((edit.block_id,))


def _replace_text(edit: pb.ReplaceText, new_id: NewId) -> ReplaceText:
    fields = _object(edit.fields)
    if not any(key in fields for key in ("children", *_FIELDS)):
        field_names = ", ".join(("children", *_FIELDS))
        raise EditError(EditErrorCode.FIELDS, "", f"at least one of {field_names} is required")
    sent_ids: dict[str, str] = {}
    children: tuple[Node, ...] | None = None
    if "children" in fields:
        children = _children(fields["children"], new_id, sent_ids)
    content = {key: fields[key] for key in _FIELDS if key in fields}
    return ReplaceText(edit.block_id, children, sent_ids, parse_content(content, ""))


def _children(value: object, new_id: NewId, sent_ids: dict[str, str]) -> tuple[Node, ...]:
    if isinstance(value, str):
        return (Leaf(string(value, "/children", limits.LEAF_TEXT)),)
    # The block's depth is not known yet: the total depth is checked when the edit is applied.
    return parse_children(value, "/children", 2, new_id, sent_ids)


def _append_text(edit: pb.AppendText, new_id: NewId) -> AppendText:
    text = _json(edit.text, "/text")
    if isinstance(text, str):
        return AppendText(edit.block_id, (Leaf(string(text, "/text", limits.LEAF_TEXT)),))
    if not isinstance(text, list):
        raise schema_error("/text", "must be a string or an array of text leaves")
    leaves = [parse_leaf(leaf, join_pointer("/text", index)) for index, leaf in enumerate(text)]
    return AppendText(edit.block_id, tuple(leaves))


def _apply_edits(edit: pb.ApplyEdits, new_id: NewId) -> ApplyEdits:
    if not 1 <= len(edit.edits) <= limits.EDITS_TOGETHER:
        raise schema_error("/edits", f"must contain 1 to {limits.EDITS_TOGETHER} edits")
    if sum(one.HasField("edit_text") for one in edit.edits) > limits.SEARCHES_TOGETHER:
        problem = (
            f"must contain at most {limits.SEARCHES_TOGETHER} searches for texts; "
            "block/text/edit takes several texts"
        )
        raise schema_error("/edits", problem)
    edits: list[DocumentEdit] = []
    for index, message in enumerate(edit.edits):
        if message.HasField("apply_edits"):
            pointer = join_pointer("/edits", index)
            raise schema_error(pointer, "edits cannot contain edits of edits")
        try:
            edits.append(read_edit(with_made_ids(message, edits), new_id))
        except EditError as error:
            pointer = join_pointer("/edits", index) + error.pointer
            raise EditError(error.code, pointer, error.problem) from None
    return ApplyEdits(tuple(edits))


def _edit_text(edit: pb.EditText, new_id: NewId) -> EditText:
    if not 1 <= len(edit.edits) <= limits.TEXT_EDITS:
        raise schema_error("/edits", f"must contain 1 to {limits.TEXT_EDITS} edits")
    replacements = [
        _replacement(one, join_pointer("/edits", index)) for index, one in enumerate(edit.edits)
    ]
    return EditText(tuple(replacements), edit.block_id if edit.HasField("block_id") else None)


def _replacement(edit: pb.TextReplacement, pointer: str) -> Replacement:
    old = string(edit.old, join_pointer(pointer, "old"), limits.MARKDOWN, empty=False)
    new = string(edit.new, join_pointer(pointer, "new"), limits.MARKDOWN)
    old_inline = parse_inline(old)
    new_inline = parse_inline(new, old_inline.citations)
    if not old_inline.text:
        raise schema_error(join_pointer(pointer, "old"), "must have some text beside citations")
    if not {*new_inline.citations} <= {*old_inline.citations}:
        problem = "block/cite sets citations; write \\[1\\] for a number in brackets"
        raise schema_error(join_pointer(pointer, "new"), problem)
    for leaf in new_inline.leaves:
        check_leaf(leaf, join_pointer(pointer, "new"))
    return Replacement.of(pointer, old, new, (old_inline, new_inline), all=edit.all)


def _cite(edit: pb.Cite, new_id: NewId) -> Cite:
    target = _target(edit)
    if edit.HasField("reference_id") and edit.citations:
        problem = "at most one of reference_id and citations is allowed"
        raise EditError(EditErrorCode.FIELDS, "/cite", problem)
    if edit.citations:
        return Cite(target, parse_cite(_json(edit.citations, "/cite"), "/cite"))
    return Cite(
        target, parse_cite(edit.reference_id, "/cite") if edit.HasField("reference_id") else None
    )


def _add_reference(edit: pb.AddReference, new_id: NewId) -> AddReference:
    reference = _json(edit.reference, "/reference")
    return AddReference(parse_reference(reference, "/reference", new_id))


def _import_references(edit: pb.ImportReferences, new_id: NewId) -> ImportReferences:
    name = BIBLIOGRAPHY_FORMATS.get(edit.format)
    if name is None:
        raise EditError(EditErrorCode.FIELDS, "/format", "is required")
    try:
        entries = FORMATS[name].parse(string(edit.text, "/text", limits.BIBLIOGRAPHY))
    except SyntaxProblem as problem:
        raise schema_error("/text", str(problem)) from None
    return ImportReferences(*references_of(entries, new_id))


def references_of(
    entries: Entries, new_id: NewId
) -> tuple[tuple[Reference, ...], tuple[Omission, ...]]:
    """Return the references in entries that are valid, and what is omitted."""
    omitted = list(entries.omitted)
    references: dict[str, Reference] = {}
    for number, entry in enumerate(entries.references):
        place = str(entry.get("id") or f"entry {number}")
        try:
            reference = parse_reference(entry, "", new_id)
        except EditError as error:
            omitted.append(Omission(place[: limits.IDENTIFIER], error.message))
            continue
        if str(reference["id"]) in references:
            omitted.append(Omission(place, "another entry has this id"))
        references.setdefault(str(reference["id"]), reference)
    return tuple(references.values()), tuple(omitted[: limits.OMISSIONS])


def _update_reference(edit: pb.UpdateReference, new_id: NewId) -> UpdateReference:
    return UpdateReference(*parse_patch(_json(edit.reference, "/reference"), "/reference"))


def _delete_reference(edit: pb.DeleteReference, new_id: NewId) -> DeleteReference:
    return DeleteReference(edit.reference_id)


def _set_block_style(edit: pb.SetBlockStyle, new_id: NewId) -> SetBlockStyle:
    # The properties are checked when the edit is applied and the type of the block is known.
    return SetBlockStyle(edit.block_id, _object(edit.properties))


def _set_leaf_style(edit: pb.SetLeafStyle, new_id: NewId) -> SetLeafStyle:
    marks = parse_marks(_object(edit.marks))
    target = _target(edit)
    if not marks:
        problem = "at least one of bold, color, italic, textDecoration is required"
        raise EditError(EditErrorCode.FIELDS, "", problem)
    return SetLeafStyle(target, marks)


def _set_article_style(edit: pb.SetArticleStyle, new_id: NewId) -> SetArticleStyle:
    patch = _json(edit.style, "/style")
    check_article_style(patch, "/style")
    return SetArticleStyle(patch)


def _set_properties(edit: pb.SetProperties, new_id: NewId) -> SetProperties:
    properties = _json(edit.properties, "/properties")
    schema.check(Properties, properties, "/properties")
    return SetProperties(properties)


def _move_block(edit: pb.MoveBlock, new_id: NewId) -> MoveBlock:
    if edit.HasField("before_id") == bool(edit.path):
        raise EditError(EditErrorCode.FIELDS, "", "exactly one of path and beforeId is required")
    return MoveBlock(edit.block_id, _place(edit), edit.with_section)


def _duplicate_block(edit: pb.DuplicateBlock, new_id: NewId) -> DuplicateBlock:
    if edit.HasField("before_id") and edit.path:
        raise EditError(EditErrorCode.FIELDS, "", "at most one of path and beforeId is allowed")
    place = _place(edit) if edit.HasField("before_id") or edit.path else None
    return DuplicateBlock(edit.block_id, place, new_id, edit.with_section)


def _place(edit: pb.MoveBlock | pb.DuplicateBlock) -> BlockPlace:
    return BlockPlace(tuple(edit.path), edit.before_id if edit.HasField("before_id") else None)


def _convert_blocks(edit: pb.ConvertBlocks, new_id: NewId) -> ConvertBlocks:
    if not 1 <= len(edit.block_ids) <= limits.BLOCKS_AN_INSERT:
        problem = f"must contain 1 to {limits.BLOCKS_AN_INSERT} ids"
        raise schema_error("/blockIds", problem)
    return ConvertBlocks(tuple(edit.block_ids), edit.type, new_id)


def _edit_table(edit: pb.EditTable, new_id: NewId) -> EditTable:
    rows = _count(edit.rows, limits.TABLE_ROWS, "/rows")
    columns = _count(edit.columns, limits.TABLE_COLUMNS, "/columns")
    row, column = edit.row, edit.column
    align = edit.align if edit.HasField("align") else None
    if align not in (None, "start", "center", "end"):
        raise schema_error("/align", "must be one of start, center, end, or null")
    changes: Mapping[int, Callable[[TableEdit], None]] = {
        pb.TABLE_ACTION_INSERT_ROWS: lambda table: table.insert_rows(row, rows),
        pb.TABLE_ACTION_DELETE_ROWS: lambda table: table.delete_rows(row, rows),
        pb.TABLE_ACTION_INSERT_COLUMNS: lambda table: table.insert_columns(column, columns),
        pb.TABLE_ACTION_DELETE_COLUMNS: lambda table: table.delete_columns(column, columns),
        pb.TABLE_ACTION_MERGE_CELLS: lambda table: table.merge_cells(row, column, rows, columns),
        pb.TABLE_ACTION_SPLIT_CELL: lambda table: table.split_cell(row, column),
        pb.TABLE_ACTION_ALIGN_COLUMNS: lambda table: table.align_columns(column, columns, align),
    }
    change = changes.get(edit.action)
    if change is None:
        raise EditError(EditErrorCode.FIELDS, "/action", "is required")
    return EditTable(edit.block_id, change, new_id)


def _count(count: int, most: int, pointer: str) -> int:
    """Return a number of rows or columns, 1 if it is absent."""
    if count > most:
        raise schema_error(pointer, f"must be 1 to {most}")
    return count or 1


_READERS: Mapping[str, Callable[[Any, NewId], DocumentEdit]] = {
    "insert_blocks": _insert_blocks,
    "write_markdown": _write_markdown,
    "delete_block": _delete_block,
    "replace_text": _replace_text,
    "append_text": _append_text,
    "edit_text": _edit_text,
    "apply_edits": _apply_edits,
    "cite": _cite,
    "add_reference": _add_reference,
    "update_reference": _update_reference,
    "import_references": _import_references,
    "delete_reference": _delete_reference,
    "set_block_style": _set_block_style,
    "set_leaf_style": _set_leaf_style,
    "set_article_style": _set_article_style,
    "set_properties": _set_properties,
    "move_block": _move_block,
    "duplicate_block": _duplicate_block,
    "convert_blocks": _convert_blocks,
    "edit_table": _edit_table,
}


def _target(edit: pb.Cite | pb.SetLeafStyle) -> Target:
    if edit.HasField("block_id") == bool(edit.leaf_path):
        raise EditError(EditErrorCode.FIELDS, "", "exactly one of blockId and leafPath is required")
    if edit.HasField("block_id"):
        if edit.HasField("anchor_id"):
            raise EditError(EditErrorCode.FIELDS, "/anchorId", "allowed only with leafPath")
        return edit.block_id
    path = _path(edit.leaf_path, "/leafPath")
    return AnchoredPath(edit.anchor_id, path) if edit.HasField("anchor_id") else path


def _path(indices: Sequence[int], pointer: str) -> Path:
    if not indices:
        raise EditError(EditErrorCode.PATH, pointer, "must be a non-empty array of integers")
    return tuple(indices)


def _json(content: bytes, pointer: str) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise EditError(EditErrorCode.BODY, pointer, "must be JSON in UTF-8") from None


def _object(content: bytes) -> Mapping[str, Any]:
    value = _json(content, "")
    if not isinstance(value, dict):
        raise EditError(EditErrorCode.BODY, "", "must be a JSON object")
    return value
