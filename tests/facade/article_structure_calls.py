"""Calls that change the structure of documents, and of bibliographies; see `article_calls`."""

from gateway.articles.v1 import articles_pb2 as pb
from gateway.articles.v1 import edits_pb2

S = {"sessionId": "s"}
B = {**S, "blockId": "b"}
EDITED = pb.ApplyEditResponse(revision=7)
DONE = {"ok": True, "revision": 7}


def call_of(request_id=None, **edit):
    """Return the call that applies an edit."""
    return pb.ApplyEditRequest(session_id="s", request_id=request_id, edit=edits_pb2.Edit(**edit))


STRUCTURE_ROWS = [
    (
        "reference/import",
        {**S, "format": "csl-json", "text": "[]"},
        call_of(import_references=edits_pb2.ImportReferences(format=4, text="[]")),
        pb.ApplyEditResponse(
            ids=["r"], omitted=[pb.Omission(place="item 1", reason="broken")], revision=7
        ),
        {"ids": ["r"], "skipped": [{"place": "item 1", "reason": "broken"}], "revision": 7},
    ),
    (
        "doc/write",
        {**S, "markdown": "# A", "position": 0, "requestId": "r"},
        call_of("r", write_markdown=edits_pb2.WriteMarkdown(markdown="# A", position=0)),
        pb.ApplyEditResponse(
            ids=["b"], omitted=[pb.Omission(place="line 1", reason="gone")], revision=7
        ),
        {"ids": ["b"], "lost": [{"place": "line 1", "reason": "gone"}], "revision": 7},
    ),
    (
        "reference/export",
        {**S, "format": "bibtex", "referenceIds": ["r"]},
        pb.ExportReferencesRequest(session_id="s", format=1, reference_ids=["r"]),
        pb.ExportReferencesResponse(text="@misc{r,\n}\n", revision=7),
        {"text": "@misc{r,\n}\n", "skipped": [], "revision": 7},
    ),
    (
        "block/move",
        {**B, "section": True, "path": [3], "requestId": "r"},
        call_of(
            "r",
            move_block=edits_pb2.MoveBlock(block_id="b", with_section=True, path=[3]),
        ),
        EDITED,
        DONE,
    ),
    (
        "block/duplicate",
        {**B, "beforeId": "c"},
        call_of(duplicate_block=edits_pb2.DuplicateBlock(block_id="b", before_id="c")),
        pb.ApplyEditResponse(ids=["d"], revision=7),
        {"ids": ["d"], "revision": 7},
    ),
    (
        "block/convert",
        {**S, "blockIds": ["b", "c"], "type": "list"},
        call_of(convert_blocks=edits_pb2.ConvertBlocks(block_ids=["b", "c"], type="list")),
        pb.ApplyEditResponse(ids=["d"], revision=7),
        {"ids": ["d"], "revision": 7},
    ),
    (
        "table/edit",
        {**B, "action": "merge-cells", "row": 1, "columns": 2},
        call_of(
            edit_table=edits_pb2.EditTable(
                block_id="b",
                action=edits_pb2.TABLE_ACTION_MERGE_CELLS,
                row=1,
                rows=1,
                columns=2,
            )
        ),
        pb.ApplyEditResponse(revision=7),
        {"ids": [], "revision": 7},
    ),
    (
        "table/edit",
        {**B, "action": "align-columns", "column": 1, "align": "end"},
        call_of(
            edit_table=edits_pb2.EditTable(
                block_id="b",
                action=edits_pb2.TABLE_ACTION_ALIGN_COLUMNS,
                column=1,
                rows=1,
                columns=1,
                align="end",
            )
        ),
        pb.ApplyEditResponse(revision=7),
        {"ids": [], "revision": 7},
    ),
    (
        "block/cite",
        {**B, "cite": [{"id": "r", "locator": "p. 3"}]},
        call_of(cite=edits_pb2.Cite(block_id="b", citations=b'[{"id":"r","locator":"p. 3"}]')),
        EDITED,
        DONE,
    ),
    (
        "doc/properties",
        {**S, "properties": {"language": None}},
        call_of(set_properties=edits_pb2.SetProperties(properties=b'{"language":null}')),
        EDITED,
        DONE,
    ),
]
