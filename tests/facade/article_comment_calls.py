"""Calls on comments of documents; see `article_calls`."""

from gateway.articles.v1 import comments_pb2 as pb

S = {"sessionId": "s"}
C = {**S, "commentId": "c"}
DONE = {"ok": True}
THREAD = pb.CommentThread(
    comments=[
        pb.Comment(id="c", text="t", user_id="u", user_name="ada", created_at_ms=1),
        pb.Comment(id="d", text="r", is_own=True, created_at_ms=2, edited_at_ms=3),
    ],
    block_id="b",
    quote="q",
    is_orphaned=True,
)
THREAD_DATA = {
    "id": "c",
    "text": "t",
    "author": {"user": "u", "name": "ada"},
    "own": False,
    "time": 1,
    "blockId": "b",
    "quote": "q",
    "orphaned": True,
    "resolved": False,
    "replies": [
        {
            "id": "d",
            "text": "r",
            "author": {"user": "", "name": ""},
            "own": True,
            "time": 2,
            "edited": 3,
        }
    ],
}
BLOCK_THREAD = pb.CommentThread(comments=[pb.Comment(id="c")], block_id="b", is_resolved=True)

COMMENT_ROWS = [
    (
        "comment/add",
        {**S, "blockId": "b", "quote": "q", "offset": 0, "text": "t"},
        pb.AddCommentRequest(session_id="s", block_id="b", quote="q", offset=0, text="t"),
        pb.AddCommentResponse(comment_id="c", revision=7),
        {"commentId": "c", "revision": 7},
    ),
    (
        "comment/add",
        {**S, "blockId": "b", "text": "t"},
        pb.AddCommentRequest(session_id="s", block_id="b", text="t"),
        pb.AddCommentResponse(comment_id="c"),
        {"commentId": "c", "revision": 0},
    ),
    (
        "comment/reply",
        {**C, "text": "t"},
        pb.ReplyToCommentRequest(session_id="s", comment_id="c", text="t"),
        pb.ReplyToCommentResponse(comment_id="d"),
        {"commentId": "d"},
    ),
    (
        "comment/edit",
        {**C, "text": "t"},
        pb.EditCommentRequest(session_id="s", comment_id="c", text="t"),
        pb.EditCommentResponse(),
        DONE,
    ),
    (
        "comment/resolve",
        C,
        pb.ResolveCommentRequest(session_id="s", comment_id="c"),
        pb.ResolveCommentResponse(),
        DONE,
    ),
    (
        "comment/resolve",
        {**C, "resolved": False},
        pb.ResolveCommentRequest(session_id="s", comment_id="c", reopens=True),
        pb.ResolveCommentResponse(),
        DONE,
    ),
    (
        "comment/delete",
        C,
        pb.DeleteCommentRequest(session_id="s", comment_id="c"),
        pb.DeleteCommentResponse(),
        DONE,
    ),
    (
        "comment/list",
        S,
        pb.ListCommentsRequest(session_id="s"),
        pb.ListCommentsResponse(threads=[THREAD], revision=7),
        {"comments": [THREAD_DATA], "revision": 7},
    ),
    (
        "comment/list",
        {**S, "blockId": "b", "resolved": True},
        pb.ListCommentsRequest(session_id="s", block_id="b", with_resolved=True),
        pb.ListCommentsResponse(threads=[BLOCK_THREAD]),
        {
            "comments": [
                {
                    "id": "c",
                    "text": "",
                    "author": {"user": "", "name": ""},
                    "own": False,
                    "time": 0,
                    "blockId": "b",
                    "orphaned": False,
                    "resolved": True,
                    "replies": [],
                }
            ],
            "revision": 0,
        },
    ),
]
