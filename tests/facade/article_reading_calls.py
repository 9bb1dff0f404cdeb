"""Calls of document editing that read parts of documents and their history; see `article_calls`."""

from gateway.articles.v1 import articles_pb2 as pb

S = {"sessionId": "s"}
DONE = {"ok": True, "revision": 7}

READING_ROWS = [
    (
        "doc/outline",
        S,
        pb.ReadOutlineRequest(session_id="s"),
        pb.ReadOutlineResponse(
            headings=[pb.OutlineEntry(block_id="b", path=[3], type="h1", text="x", words=2)],
            revision=7,
        ),
        {
            "headings": [{"id": "b", "path": [3], "type": "h1", "text": "x", "words": 2}],
            "revision": 7,
        },
    ),
    (
        "doc/find",
        {**S, "query": "x"},
        pb.FindTextRequest(session_id="s", query="x", limit=100),
        pb.FindTextResponse(
            places=[pb.TextPlace(block_id="b", offset=3, snippet="a x")], has_more=True, revision=7
        ),
        {
            "places": [{"blockId": "b", "offset": 3, "snippet": "a x"}],
            "hasMore": True,
            "revision": 7,
        },
    ),
    (
        "history/list",
        {**S, "before": 9, "limit": 2},
        pb.ListHistoryRequest(session_id="s", before=9, limit=2),
        pb.ListHistoryResponse(
            entries=[
                pb.HistoryEntry(
                    revision=8, at_ms=5, is_own=True, operation="undo", reversed_revision=7
                ),
                pb.HistoryEntry(revision=7, at_ms=4, operation="insert"),
            ],
            has_more=True,
        ),
        {
            "entries": [
                {"revision": 8, "time": 5, "own": True, "operation": "undo", "reversed": 7},
                {"revision": 7, "time": 4, "own": False, "operation": "insert"},
            ],
            "hasMore": True,
        },
    ),
    *(
        (
            path,
            S,
            pb.ReverseEditRequest(session_id="s", redo=is_redo),
            pb.ReverseEditResponse(revision=7),
            DONE,
        )
        for path, is_redo in (("history/undo", False), ("history/redo", True))
    ),
    (
        "history/restore",
        {**S, "revision": 3},
        pb.RestoreRevisionRequest(session_id="s", revision=3),
        pb.RestoreRevisionResponse(revision=7),
        DONE,
    ),
    (
        "history/diff",
        {**S, "from": 3, "to": 5},
        pb.ReadDifferencesRequest(session_id="s", first=3, last=5),
        pb.ReadDifferencesResponse(
            blocks=[
                pb.BlockDifference(block_id="b", before="x", after=""),
                pb.BlockDifference(block_id="c", before="y"),
            ]
        ),
        {
            "blocks": [
                {"blockId": "b", "before": "x", "after": ""},
                {"blockId": "c", "before": "y"},
            ],
            "hasMore": False,
        },
    ),
]
