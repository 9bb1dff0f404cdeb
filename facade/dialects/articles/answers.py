"""Translation of gRPC responses to the `data` of HTTP responses; see `answer_types`."""

from collections.abc import Iterable, Mapping

import orjson

from facade.dialects.articles import bodies, edit_bodies
from gateway.articles.v1 import articles_pb2 as pb

OK = 1

_PERMISSIONS = {pb.PERMISSION_PRIVATE: "private", pb.PERMISSION_GROUP_ONLY: "group-only"}

Data = dict[str, object]


def render(data: Mapping[str, object]) -> bytes:
    """Return the body of a successful response."""
    return orjson.dumps({"code": OK, "data": data})


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


def edited(_: edit_bodies.EditBody, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of an edit that creates no ids."""
    return {"ok": True, "revision": answer.revision}


def articles(_: bodies.ListArticles, answer: pb.ListArticlesResponse) -> Data:
    """Return the data of doc/list."""
    return {"articles": [_group(group) for group in answer.groups]}


def created(_: bodies.CreateArticle, answer: pb.CreateArticleResponse) -> Data:
    """Return the data of doc/create."""
    return {"article": node(answer.article), "group": answer.article.group_id}


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
        **_if_any(properties=answer.properties),
    }


def _if_any(**objects: bytes) -> Data:
    """Return JSON objects by names, without empty ones."""
    return {
        name: orjson.Fragment(value) for name, value in objects.items() if value not in (b"", b"{}")
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
        **_if_any(properties=answer.changes.properties, labels=answer.changes.labels),
    }


def sessions(_: bodies.OfSession, answer: pb.ListSessionsResponse) -> Data:
    """Return the data of session/list."""
    return {"sessions": [_open_session(one) for one in answer.sessions]}


def _open_session(opened: pb.OpenSession) -> Data:
    data: Data = {
        "user": opened.user_id,
        "name": opened.name,
        "own": opened.is_own,
        "this": opened.is_this,
        "idle": opened.idle_ms,
    }
    if opened.client_id:
        data["clientId"] = opened.client_id
    return data


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
    _: bodies.RepeatableBody, answer: pb.ReverseEditResponse | pb.RestoreRevisionResponse
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


def inserted(_: edit_bodies.EditBody, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of block/insert, and of edits that answer with ids, too."""
    return {"ids": list(answer.ids), "revision": answer.revision}


def text_edited(_: edit_bodies.EditText, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of block/text/edit."""
    return {"changed": list(answer.ids), "revision": answer.revision}


def reference_added(_: edit_bodies.AddReference, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of reference/add."""
    return {"id": answer.ids[0], "revision": answer.revision}


def references_imported(_: edit_bodies.ImportReferences, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of reference/import."""
    skipped = _omissions(answer.omitted)
    return {"ids": list(answer.ids), "skipped": skipped, "revision": answer.revision}


def written(_: edit_bodies.WriteMarkdown, answer: pb.ApplyEditResponse) -> Data:
    """Return the data of doc/write."""
    lost = _omissions(answer.omitted)
    return {"ids": list(answer.ids), "lost": lost, "revision": answer.revision}


def references_exported(_: bodies.ExportReferences, answer: pb.ExportReferencesResponse) -> Data:
    """Return the data of reference/export."""
    skipped = _omissions(answer.omitted)
    return {"text": answer.text, "skipped": skipped, "revision": answer.revision}


def exported(_: bodies.ExportArticle, answer: pb.ExportArticleResponse) -> Data:
    """Return the data of doc/export."""
    data: Data = {"fileId": answer.file_id} if answer.file_id else {"text": answer.text}
    return {
        **data,
        "filename": answer.filename,
        "mimeType": answer.mime_type,
        "bytes": answer.size_bytes,
        "lost": _omissions(answer.omitted),
        "revision": answer.revision,
    }


def imported(_: bodies.ImportArticle, answer: pb.ImportArticleResponse) -> Data:
    """Return the data of doc/import."""
    data: Data = {
        "ids": list(answer.ids),
        "referenceIds": list(answer.reference_ids),
        "lost": _omissions(answer.omitted),
        "revision": answer.revision,
    }
    if answer.suggestion_id:
        data["suggestionId"] = answer.suggestion_id
    return data


def references_formatted(_: bodies.FormatReferences, answer: pb.FormatReferencesResponse) -> Data:
    """Return the data of reference/format."""
    return {
        "citations": [
            {"blockId": one.block_id, "referenceIds": list(one.reference_ids), "text": one.text}
            for one in answer.citations
        ],
        "bibliography": [
            {"referenceId": one.reference_id, "text": one.text} for one in answer.bibliography
        ],
        "revision": answer.revision,
    }


def _omissions(omitted: Iterable[pb.Omission]) -> list[Data]:
    return [{"place": one.place, "reason": one.reason} for one in omitted]


def _group(group: pb.ArticleGroup) -> Data:
    return {
        "group_id": group.group_id,
        "name": group.name,
        "isCreator": group.is_creator,
        "articles": [node(article) for article in group.articles],
        "time_create": group.created_at,
    }


def node(article: pb.Article) -> Data:
    """Return a document in a list."""
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
