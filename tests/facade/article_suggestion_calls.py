"""Calls on suggested edits of documents; see `article_calls`."""

from gateway.articles.v1 import articles_pb2, edits_pb2
from gateway.articles.v1 import suggestions_pb2 as pb

S = {"sessionId": "s"}
G = {**S, "suggestionId": "g"}


def _suggested(if_revision=None, **edit):
    return articles_pb2.ApplyEditRequest(
        session_id="s", if_revision=if_revision, suggest=True, edit=edits_pb2.Edit(**edit)
    )


SUGGESTED = articles_pb2.ApplyEditResponse(revision=7, suggestion_id="g", ids=["b"])

SUGGESTION_ROWS = [
    (
        "block/delete",
        {**S, "blockId": "b", "suggest": True},
        _suggested(delete_block=edits_pb2.DeleteBlock(block_id="b")),
        SUGGESTED,
        {"ok": True, "revision": 7, "suggestionId": "g"},
    ),
    (
        "block/style",
        {**S, "blockId": "b", "indent": True, "suggest": True},
        _suggested(
            set_block_style=edits_pb2.SetBlockStyle(block_id="b", properties=b'{"indent":true}')
        ),
        SUGGESTED,
        {"ok": True, "revision": 7, "suggestionId": "g"},
    ),
    (
        "block/insert",
        {**S, "path": [0], "blocks": [{"type": "h1"}], "suggest": True, "ifRevision": 7},
        _suggested(7, insert_blocks=edits_pb2.InsertBlocks(path=[0], blocks=b'[{"type":"h1"}]')),
        SUGGESTED,
        {"ids": ["b"], "revision": 7, "suggestionId": "g"},
    ),
    (
        "suggestion/list",
        {**S, "after": "f", "limit": 2},
        pb.ListSuggestionsRequest(session_id="s", after_id="f", limit=2),
        pb.ListSuggestionsResponse(
            suggestions=[
                pb.Suggestion(
                    id="g",
                    user_id="u",
                    user_name="ada",
                    created_at_ms=3,
                    revision=5,
                    edit="edit_text",
                    is_stale=True,
                    blocks=[
                        pb.SuggestedBlock(block_id="b", before="x", after="y"),
                        pb.SuggestedBlock(block_id="c", after="", after_id=""),
                    ],
                    reference_ids=["r"],
                    changes_style=True,
                    changes_properties=True,
                )
            ],
            has_more=True,
            revision=7,
        ),
        {
            "suggestions": [
                {
                    "id": "g",
                    "author": {"user": "u", "name": "ada"},
                    "own": False,
                    "time": 3,
                    "revision": 5,
                    "endpoint": "block/text/edit",
                    "stale": True,
                    "blocks": [
                        {"blockId": "b", "before": "x", "after": "y"},
                        {"blockId": "c", "after": "", "afterId": ""},
                    ],
                    "references": ["r"],
                    "style": True,
                    "properties": True,
                }
            ],
            "hasMore": True,
            "revision": 7,
        },
    ),
    (
        "suggestion/accept",
        {**G, "ifRevision": 7, "requestId": "q"},
        pb.AcceptSuggestionRequest(
            session_id="s", suggestion_id="g", if_revision=7, request_id="q"
        ),
        pb.AcceptSuggestionResponse(revision=8),
        {"ok": True, "revision": 8},
    ),
    (
        "suggestion/reject",
        G,
        pb.RejectSuggestionRequest(session_id="s", suggestion_id="g"),
        pb.RejectSuggestionResponse(),
        {"ok": True},
    ),
]
