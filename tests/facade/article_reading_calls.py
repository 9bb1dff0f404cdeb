"""Calls of document editing that read parts of documents and their history; see `article_calls`."""

from gateway.articles.v1 import articles_pb2 as pb

S = {"sessionId": "s"}
DONE = {"ok": True, "revision": 7}

LOST = {"place": "line 1", "reason": "a rule"}

READING_ROWS = [
    (
        "doc/export",
        {**S, "format": "csl-json", "style": "apa", "as": "text"},
        pb.ExportArticleRequest(
            session_id="s", format=pb.DOCUMENT_FORMAT_CSL_JSON, style="apa", as_file=False
        ),
        pb.ExportArticleResponse(
            text="[]", filename="a.json", mime_type="application/json", size_bytes=2, revision=7
        ),
        {
            **{"text": "[]", "filename": "a.json", "mimeType": "application/json", "bytes": 2},
            **{"lost": [], "revision": 7},
        },
    ),
    (
        "doc/export",
        {**S, "format": "pdf", "as": "file"},
        pb.ExportArticleRequest(session_id="s", format=pb.DOCUMENT_FORMAT_PDF, as_file=True),
        pb.ExportArticleResponse(
            file_id="file-1",
            filename="a.pdf",
            mime_type="application/pdf",
            size_bytes=9,
            omitted=[pb.Omission(place="line 1", reason="a rule")],
            revision=7,
        ),
        {
            **{"fileId": "file-1", "filename": "a.pdf", "mimeType": "application/pdf", "bytes": 9},
            **{"lost": [LOST], "revision": 7},
        },
    ),
    *(
        (
            "doc/import",
            {
                **{**S, **source, "format": "jats", "position": 2, "ifRevision": 6},
                "requestId": "r",
            },
            pb.ImportArticleRequest(
                session_id="s",
                format=pb.DOCUMENT_FORMAT_JATS,
                position=2,
                if_revision=6,
                request_id="r",
                **message,
            ),
            pb.ImportArticleResponse(
                revision=7,
                ids=["a"],
                reference_ids=["k"],
                omitted=[pb.Omission(place="line 1", reason="a rule")],
            ),
            {"ids": ["a"], "referenceIds": ["k"], "lost": [LOST], "revision": 7},
        )
        for source, message in (
            ({"text": "<p/>"}, {"text": "<p/>"}),
            ({"fileId": "file-1"}, {"file_id": "file-1"}),
        )
    ),
    (
        "reference/format",
        {**S, "style": "apa", "locale": "de"},
        pb.FormatReferencesRequest(session_id="s", style="apa", locale="de"),
        pb.FormatReferencesResponse(
            citations=[pb.FormattedCitation(block_id="b", reference_ids=["k"], text="(K)")],
            bibliography=[pb.FormattedReference(reference_id="k", text="K.")],
            revision=7,
        ),
        {
            "citations": [{"blockId": "b", "referenceIds": ["k"], "text": "(K)"}],
            "bibliography": [{"referenceId": "k", "text": "K."}],
            "revision": 7,
        },
    ),
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
