"""Calls of document editing, each with what it asks of the service and how that is answered."""

import orjson

from gateway.articles.v1 import articles_pb2 as pb
from gateway.articles.v1 import edits_pb2
from tests.facade.article_comment_calls import COMMENT_ROWS
from tests.facade.article_reading_calls import READING_ROWS
from tests.facade.article_sharing_calls import SHARING_ROWS
from tests.facade.article_structure_calls import STRUCTURE_ROWS
from tests.facade.article_suggestion_calls import SUGGESTION_ROWS

S = {"sessionId": "s"}
B = {**S, "blockId": "b"}
LEAVES = [{"text": "π", "bold": True, "cite": None}]
BLOCKS = [{"type": "paragraph", "children": LEAVES}, {"type": "code", "code": "x"}]
NODE = {
    "outer_id": "17",
    "name": "n",
    "group": 5,
    "sharePermission": {"operation": True, "permission": "group-only"},
    "children": [],
    "fileholderDeep": 0,
    "time_create": 1790000000,
}
ARTICLE = pb.Article(
    id="17",
    name="n",
    group_id=5,
    may_edit=True,
    permission=pb.PERMISSION_GROUP_ONLY,
    created_at=1790000000,
)
PRIVATE = pb.Article(id="18", name="", permission=pb.PERMISSION_PRIVATE, depth=2)
DONE = {"ok": True, "revision": 7}


def call_of(if_revision=None, dry_run=False, **edit):
    """Return the call that applies an edit."""
    return pb.ApplyEditRequest(
        session_id="s", if_revision=if_revision, dry_run=dry_run, edit=edits_pb2.Edit(**edit)
    )


EDITED = pb.ApplyEditResponse(revision=7)


# path, body, the call that it makes, the service's answer, the data of ours
ROWS = [
    (
        "session/create",
        {"docId": "17"},
        pb.CreateSessionRequest(article_id="17"),
        pb.CreateSessionResponse(session_id="s", block_count=3, reused=True, revision=9),
        {"sessionId": "s", "blockCount": 3, "reused": True, "revision": 9},
    ),
    (
        "session/create",
        {"docId": "17", "clientId": "c"},
        pb.CreateSessionRequest(article_id="17", client_id="c"),
        pb.CreateSessionResponse(session_id="s"),
        {"sessionId": "s", "blockCount": 0, "reused": False, "revision": 0},
    ),
    (
        "session/destroy",
        S,
        pb.DestroySessionRequest(session_id="s"),
        pb.DestroySessionResponse(),
        {"ok": True},
    ),
    (
        "session/list",
        S,
        pb.ListSessionsRequest(session_id="s"),
        pb.ListSessionsResponse(
            sessions=[
                pb.OpenSession(user_id="u", is_own=True, is_this=True, client_id="c"),
                pb.OpenSession(user_id="v", name="Vera", idle_ms=12_999),
            ]
        ),
        {
            "sessions": [
                {"user": "u", "name": "", "own": True, "this": True, "clientId": "c", "idle": 0},
                {"user": "v", "name": "Vera", "own": False, "this": False, "idle": 12_999},
            ]
        },
    ),
    (
        "doc/list",
        {},
        pb.ListArticlesRequest(),
        pb.ListArticlesResponse(
            groups=[
                pb.ArticleGroup(group_id=0, name="Private", articles=[PRIVATE]),
                pb.ArticleGroup(
                    group_id=2**53 - 1,
                    name="g",
                    is_creator=True,
                    articles=[ARTICLE],
                    created_at=1,
                ),
            ]
        ),
        {
            "articles": [
                {
                    "group_id": 0,
                    "name": "Private",
                    "isCreator": False,
                    "articles": [
                        {
                            "outer_id": "18",
                            "name": "",
                            "group": 0,
                            "sharePermission": {"operation": False, "permission": "private"},
                            "children": [],
                            "fileholderDeep": 2,
                            "time_create": 0,
                        }
                    ],
                    "time_create": 0,
                },
                {
                    "group_id": 2**53 - 1,
                    "name": "g",
                    "isCreator": True,
                    "articles": [NODE],
                    "time_create": 1,
                },
            ]
        },
    ),
    (
        "doc/create",
        {},
        pb.CreateArticleRequest(),
        pb.CreateArticleResponse(article=ARTICLE),
        {"article": NODE, "group": 5},
    ),
    (
        "doc/create",
        {"group": 5, "name": "n"},
        pb.CreateArticleRequest(group_id=5, name="n"),
        pb.CreateArticleResponse(article=ARTICLE),
        {"article": NODE, "group": 5},
    ),
    (
        "doc/create",
        {"group": None, "name": None},
        pb.CreateArticleRequest(),
        pb.CreateArticleResponse(article=ARTICLE),
        {"article": NODE, "group": 5},
    ),
    (
        "doc/delete",
        {"docId": "17"},
        pb.DeleteArticleRequest(article_id="17"),
        pb.DeleteArticleResponse(),
        {"article": "17"},
    ),
    (
        "doc/read",
        S,
        pb.ReadArticleRequest(session_id="s"),
        pb.ReadArticleResponse(
            blocks=[pb.BlockSummary(id="b", type="h1", text="# π"), pb.BlockSummary(id="c")],
            text="# π",
            style=b'{"global":{"paperSize":"A4"}}',
            references=b'[{"id":"r"}]',
            version="1.0",
            revision=7,
        ),
        {
            "blocks": [
                {"id": "b", "type": "h1", "text": "# π"},
                {"id": "c", "type": "", "text": ""},
            ],
            "text": "# π",
            "style": {"global": {"paperSize": "A4"}},
            "reference": [{"id": "r"}],
            "version": "1.0",
            "revision": 7,
        },
    ),
    (
        "doc/read-block",
        B,
        pb.ReadBlockRequest(session_id="s", block_id="b"),
        pb.ReadBlockResponse(
            block=b'{"id":"b"}', path=[0, 3], style=b'{"indent":true}', text="t", revision=7
        ),
        {
            "block": {"id": "b"},
            "path": [0, 3],
            "style": {"indent": True},
            "text": "t",
            "revision": 7,
        },
    ),
    (
        "doc/read-blocks",
        {**S, "blockIds": ["b", "c"]},
        pb.ReadBlocksRequest(session_id="s", block_ids=["b", "c"]),
        pb.ReadBlocksResponse(
            blocks=[
                pb.ReadBlockResponse(
                    block=b'{"id":"c"}', path=[1], style=b"{}", text="t", revision=7
                )
            ],
            revision=7,
        ),
        {
            "blocks": [
                {"block": {"id": "c"}, "path": [1], "style": {}, "text": "t", "revision": 7}
            ],
            "revision": 7,
        },
    ),
    (
        "doc/changes",
        S,
        pb.ReadChangesRequest(session_id="s"),
        pb.ReadChangesResponse(
            revision=7,
            changes=pb.Changes(
                order=["b", "c"],
                changed=["c"],
                style=b'{"global":{}}',
                references=b'[{"id":"r"}]',
                cited=["r"],
            ),
        ),
        {
            "revision": 7,
            "order": ["b", "c"],
            "changed": ["c"],
            "style": {"global": {}},
            "reference": [{"id": "r"}],
            "cited": ["r"],
        },
    ),
    (
        "doc/changes",
        {**S, "since": 7},
        pb.ReadChangesRequest(session_id="s", since=7),
        pb.ReadChangesResponse(revision=7),
        {"revision": 7},
    ),
    (
        "block/insert",
        {**S, "path": [0, 2**40], "blocks": BLOCKS, "ifRevision": 6},
        call_of(
            if_revision=6,
            insert_blocks=edits_pb2.InsertBlocks(path=[0, 2**32 - 1], blocks=orjson.dumps(BLOCKS)),
        ),
        pb.ApplyEditResponse(ids=["b", "c"], revision=7),
        {"ids": ["b", "c"], "revision": 7},
    ),
    (
        "block/delete",
        {**B, "ifRevision": 0},
        call_of(if_revision=0, delete_block=edits_pb2.DeleteBlock(block_id="b")),
        EDITED,
        DONE,
    ),
    (
        "block/delete",
        {**B, "ifRevision": None},
        call_of(delete_block=edits_pb2.DeleteBlock(block_id="b")),
        EDITED,
        DONE,
    ),
    *(
        (
            "block/text/replace",
            {**B, "ignored": 1, **fields},
            call_of(replace_text=edits_pb2.ReplaceText(block_id="b", fields=orjson.dumps(fields))),
            EDITED,
            DONE,
        )
        for fields in (
            {"children": "text"},
            {"children": LEAVES},
            {"children": None},
            {"equation": "x^2"},
            {"code": "x", "language": "py"},
            {"image": [{"url": "https://example.org/a.png"}]},
            {"author": [{"name": "Ada"}], "institution": []},
            {"author": "of the wrong type"},
            {},
        )
    ),
    *(
        (
            "block/text/append",
            {**B, "text": text},
            call_of(append_text=edits_pb2.AppendText(block_id="b", text=orjson.dumps(text))),
            EDITED,
            DONE,
        )
        for text in ("text", LEAVES, None)
    ),
    (
        "edits/apply",
        {
            **S,
            "edits": [
                {"endpoint": "block/delete", "blockId": "b"},
                {"endpoint": "block/insert", "path": [0], "blocks": BLOCKS},
            ],
        },
        call_of(
            apply_edits=edits_pb2.ApplyEdits(
                edits=[
                    edits_pb2.Edit(delete_block=edits_pb2.DeleteBlock(block_id="b")),
                    edits_pb2.Edit(
                        insert_blocks=edits_pb2.InsertBlocks(path=[0], blocks=orjson.dumps(BLOCKS))
                    ),
                ]
            )
        ),
        pb.ApplyEditResponse(revision=7, results=[pb.EditResult(), pb.EditResult(ids=["c", "d"])]),
        {"results": [{"ok": True}, {"ids": ["c", "d"]}], "revision": 7},
    ),
    (
        "block/text/edit",
        {
            **S,
            "edits": [{"old": "a", "new": "b"}, {"old": "c", "new": "", "all": True}],
            "blockId": "b",
            "dryRun": True,
        },
        call_of(
            dry_run=True,
            edit_text=edits_pb2.EditText(
                edits=[
                    edits_pb2.TextReplacement(old="a", new="b"),
                    edits_pb2.TextReplacement(old="c", all=True),
                ],
                block_id="b",
            ),
        ),
        pb.ApplyEditResponse(ids=["b"], revision=7),
        {"changed": ["b"], "revision": 7},
    ),
    *(
        ("block/cite", {**S, **body}, call_of(cite=edits_pb2.Cite(**call)), EDITED, DONE)
        for body, call in (
            ({"blockId": "b", "cite": "r"}, {"block_id": "b", "reference_id": "r"}),
            ({"blockId": "b", "cite": None}, {"block_id": "b"}),
            ({"blockId": "b"}, {"block_id": "b"}),
            ({"blockId": "b", "leafPath": None, "cite": ""}, {"block_id": "b", "reference_id": ""}),
            ({"blockId": "b", "leafPath": [3]}, {"block_id": "b", "leaf_path": [3]}),
            ({"blockId": None, "leafPath": None}, {}),
            ({}, {}),
            ({"leafPath": [1, 0], "cite": "r"}, {"leaf_path": [1, 0], "reference_id": "r"}),
            ({"leafPath": [1] * 1000}, {"leaf_path": [1] * 64}),
        )
    ),
    (
        "block/cite",
        {**S, "leafPath": [0], "ifRevision": 3},
        call_of(if_revision=3, cite=edits_pb2.Cite(leaf_path=[0])),
        EDITED,
        DONE,
    ),
    (
        "reference/add",
        {**S, "reference": {"title": "t", "x-y": ["z"]}},
        call_of(add_reference=edits_pb2.AddReference(reference=b'{"title":"t","x-y":["z"]}')),
        pb.ApplyEditResponse(ids=["r"], revision=7),
        {"id": "r", "revision": 7},
    ),
    (
        "reference/update",
        {**S, "reference": {"id": "r", "year": None}},
        call_of(update_reference=edits_pb2.UpdateReference(reference=b'{"id":"r","year":null}')),
        EDITED,
        DONE,
    ),
    (
        "reference/delete",
        {**S, "referenceId": "r"},
        call_of(delete_reference=edits_pb2.DeleteReference(reference_id="r")),
        EDITED,
        DONE,
    ),
    *(
        (
            "block/style",
            {**B, **properties},
            call_of(
                set_block_style=edits_pb2.SetBlockStyle(
                    block_id="b", properties=orjson.dumps(properties)
                )
            ),
            EDITED,
            DONE,
        )
        for properties in (
            {"style": {"color": None, "width": 3}, "indent": None},
            {"serial": True, "isTemplate": False},
            {"authorStyle": {"gap": 1}, "institutionStyle": None},
            {"unknown": 1, "__class__": 2, "model_config": 3},
            {"leafPath": [0]},
            {},
        )
    ),
    *(
        (
            "style/leaf",
            {**S, **place, **marks},
            call_of(set_leaf_style=edits_pb2.SetLeafStyle(marks=orjson.dumps(marks), **call)),
            EDITED,
            DONE,
        )
        for place, call, marks in (
            ({"blockId": "b"}, {"block_id": "b"}, {"bold": True, "italic": None}),
            ({"leafPath": [1, 2, 3]}, {"leaf_path": [1, 2, 3]}, {"textDecoration": "underline"}),
            ({"blockId": "b"}, {"block_id": "b"}, {"color": None}),
            ({"blockId": "b"}, {"block_id": "b"}, {"unknown": 1}),
            ({"blockId": "b", "leafPath": [3]}, {"block_id": "b", "leaf_path": [3]}, {}),
            ({}, {}, {}),
        )
    ),
    (
        "style/article",
        {**S, "style": {"title": None, "global": {"margin": {"top": 1}}}, "ifRevision": 2**63 - 1},
        call_of(
            if_revision=2**63 - 1,
            set_article_style=edits_pb2.SetArticleStyle(
                style=b'{"title":null,"global":{"margin":{"top":1}}}'
            ),
        ),
        EDITED,
        DONE,
    ),
    *READING_ROWS,
    *COMMENT_ROWS,
    *SUGGESTION_ROWS,
    *SHARING_ROWS,
    *STRUCTURE_ROWS,
]
STRICT = {"block/style", "style/leaf", "style/article"}
