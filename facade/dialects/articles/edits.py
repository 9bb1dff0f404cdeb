"""The edits of a document: for each endpoint its body, its edit, and its answer."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from facade.dialects.articles import answer_types, answers, edit_bodies, requests
from facade.dialects.articles.errors import Code, request_error
from facade.dialects.articles.reading import pointer, read
from gateway.articles.v1 import articles_pb2, edits_pb2
from gateway.articles.v1.edits_pb2 import Edit
from services.common.errors import GatewayError

# Fields of the whole request.
_OF_REQUEST = ("sessionId", "requestId", "ifRevision", "ifBlockRevision", "dryRun", "suggest")


class EditKind(NamedTuple):
    """How an edit is requested and answered.

    Attributes:
        body: wire type of the request.
        edit: translates the body.
        answer: wire type of the response's `data`.
        data: returns `data` for the body and the service's response.
    """

    body: type[edit_bodies.EditBody]
    edit: Callable[[Any], Edit]
    answer: type[BaseModel] = answer_types.Edited
    data: Callable[[Any, Any], answers.Data] = answers.edited


# By the path below `/article/v1/`.
SINGLE_EDITS: Mapping[str, EditKind] = {
    "block/insert": EditKind(
        edit_bodies.InsertBlocks, requests.insert_blocks, answer_types.Inserted, answers.inserted
    ),
    "doc/write": EditKind(
        edit_bodies.WriteMarkdown, requests.write_markdown, answer_types.Written, answers.written
    ),
    "block/delete": EditKind(edit_bodies.DeleteBlock, requests.delete_block),
    "block/move": EditKind(edit_bodies.MoveBlock, requests.move_block),
    "block/duplicate": EditKind(
        edit_bodies.DuplicateBlock,
        requests.duplicate_block,
        answer_types.Inserted,
        answers.inserted,
    ),
    "block/convert": EditKind(
        edit_bodies.ConvertBlocks, requests.convert_blocks, answer_types.Inserted, answers.inserted
    ),
    "table/edit": EditKind(
        edit_bodies.EditTable, requests.edit_table, answer_types.Inserted, answers.inserted
    ),
    "block/text/replace": EditKind(edit_bodies.ReplaceText, requests.replace_text),
    "block/text/append": EditKind(edit_bodies.AppendText, requests.append_text),
    "block/text/edit": EditKind(
        edit_bodies.EditText, requests.edit_text, answer_types.TextEdited, answers.text_edited
    ),
    "block/cite": EditKind(edit_bodies.Cite, requests.cite),
    "reference/add": EditKind(
        edit_bodies.AddReference,
        requests.add_reference,
        answer_types.ReferenceAdded,
        answers.reference_added,
    ),
    "reference/import": EditKind(
        edit_bodies.ImportReferences,
        requests.import_references,
        answer_types.ReferencesImported,
        answers.references_imported,
    ),
    "reference/update": EditKind(edit_bodies.UpdateReference, requests.update_reference),
    "reference/delete": EditKind(edit_bodies.DeleteReference, requests.delete_reference),
    "block/style": EditKind(edit_bodies.SetBlockStyle, requests.set_block_style),
    "style/leaf": EditKind(edit_bodies.SetLeafStyle, requests.set_leaf_style),
    "doc/properties": EditKind(edit_bodies.SetProperties, requests.set_properties),
    "style/article": EditKind(edit_bodies.SetArticleStyle, requests.set_article_style),
}


def apply_edits(body: edit_bodies.ApplyEdits) -> Edit:
    """Return the edit of edits/apply.

    Raises:
        GatewayError: an edit is invalid; its pointer begins with the position of the edit.
    """
    edits = []
    for index, fields in enumerate(body.edits):
        at = pointer(["edits", index])
        try:
            edits.append(_single(fields, body.sessionId))
        except GatewayError as error:
            message = error.message.removeprefix("the body")
            raise GatewayError(
                error.reason,
                f"{at}{message}",
                param=at + error.param,
                article_code=error.article_code,
            ) from None
    return Edit(apply_edits=edits_pb2.ApplyEdits(edits=edits))


def edits_applied(
    body: edit_bodies.ApplyEdits, answer: articles_pb2.ApplyEditResponse
) -> answers.Data:
    """Return the data of edits/apply: those of its edits, and the revision after all of them."""
    results = []
    for fields, result in zip(body.edits, answer.results, strict=True):
        single = articles_pb2.ApplyEditResponse(
            revision=answer.revision, ids=result.ids, omitted=result.omitted
        )
        data = SINGLE_EDITS[fields["endpoint"]].data(body, single)
        results.append({name: value for name, value in data.items() if name != "revision"})
    return {"results": results, "revision": answer.revision}


EDITS: Mapping[str, EditKind] = {
    **SINGLE_EDITS,
    "edits/apply": EditKind(
        edit_bodies.ApplyEdits, apply_edits, answer_types.EditsApplied, edits_applied
    ),
}


def _single(fields: dict[str, Any], session_id: str) -> Edit:
    endpoint = fields.get("endpoint")
    kind = SINGLE_EDITS.get(endpoint) if isinstance(endpoint, str) else None
    if kind is None:
        endpoints = ", ".join(SINGLE_EDITS)
        raise request_error(Code.SCHEMA, "/endpoint", f"must be one of {endpoints}")
    for name in _OF_REQUEST:
        if name in fields:
            raise request_error(Code.SCHEMA, pointer([name]), "is a field of the whole request")
    own = {name: value for name, value in fields.items() if name != "endpoint"}
    return kind.edit(read(kind.body, {**own, "sessionId": session_id}))
