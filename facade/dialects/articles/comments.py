"""Comments on documents: requests, responses, and their translation."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from facade.dialects.articles import answers
from facade.dialects.articles.answer_types import Revision
from facade.dialects.articles.bodies import BlockId, Index, OfSession, RepeatableBody
from gateway.articles.v1 import comments_pb2

# The default of a field that may be omitted.
_ABSENT: Any = None
_CommentId = Annotated[str, Field(description="Id of a comment, from comment/add or comment/list.")]
_Text = Annotated[str, Field(min_length=1, max_length=5_000)]
_UnixMilliseconds = Annotated[int, Field(description="Unix milliseconds.")]


class AddComment(RepeatableBody):
    """A comment to add on an element, or on a passage of it."""

    blockId: BlockId
    quote: Annotated[str, Field(min_length=1, max_length=2_000)] | None = Field(
        None,
        description="The passage, within one text of the element, as plain text or as Markdown; "
        "all of the element if omitted.",
    )
    offset: Annotated[Index, Field(lt=2**32)] | None = Field(
        None,
        description="Position of the passage in its text, as in doc/find; needed if it occurs more "
        "than once.",
    )
    text: _Text


class ReplyToComment(RepeatableBody):
    """A reply to the thread of a comment."""

    commentId: _CommentId
    text: _Text


class EditComment(RepeatableBody):
    """The new text of a comment of the caller's."""

    commentId: _CommentId
    text: _Text


class ResolveComment(RepeatableBody):
    """Names a comment whose thread is resolved."""

    commentId: _CommentId
    resolved: bool = Field(True, description="`false` opens the thread again.")


class DeleteComment(RepeatableBody):
    """Names a comment to delete; the first one of a thread goes with its replies."""

    commentId: _CommentId


class ListComments(OfSession):
    """Names a session, and optionally a block."""

    blockId: BlockId | None = Field(
        None, description="Only comments on this element, or on one in it."
    )
    resolved: bool = Field(False, description="Whether to list resolved threads, too.")


class _Answer(BaseModel):
    model_config = ConfigDict(defer_build=True)


class CommentAdded(_Answer):
    """The added comment."""

    commentId: str
    revision: Revision


class ReplyAdded(_Answer):
    """The added reply."""

    commentId: str


class CommentAuthor(_Answer):
    """The author of a comment or suggestion; both fields are empty if the user was erased."""

    user: Annotated[str, Field(description="Id of the user.")]
    name: str


class Reply(_Answer):
    """A reply to a comment."""

    id: str
    text: str
    author: CommentAuthor
    own: Annotated[bool, Field(description="Whether the caller is the author.")]
    time: _UnixMilliseconds
    edited: Annotated[int, Field(description="Unix milliseconds of the last change.")] = _ABSENT


class Thread(Reply):
    """A comment with the replies to it."""

    blockId: Annotated[
        str, Field(description="Id of the element; while its passage is there, of the one with it.")
    ]
    quote: Annotated[
        str, Field(description="The passage as it was; omitted if it is on all of the element.")
    ] = _ABSENT
    offset: Annotated[
        int, Field(description="Where the passage is now in the text of the element, if it is.")
    ] = _ABSENT
    orphaned: Annotated[
        bool, Field(description="Whether the passage, or the element, is gone from the document.")
    ]
    resolved: bool
    replies: list[Reply]


class Threads(_Answer):
    """The comments of a document."""

    comments: Annotated[list[Thread], Field(description="The oldest first.")]
    revision: Revision


def add_comment(body: AddComment) -> comments_pb2.AddCommentRequest:
    """Return the request to add a comment."""
    return comments_pb2.AddCommentRequest(
        session_id=body.sessionId,
        block_id=body.blockId,
        quote=body.quote,
        offset=body.offset,
        text=body.text,
        request_id=body.requestId,
    )


def reply_to_comment(body: ReplyToComment) -> comments_pb2.ReplyToCommentRequest:
    """Return the request to add a reply."""
    return comments_pb2.ReplyToCommentRequest(
        session_id=body.sessionId,
        comment_id=body.commentId,
        text=body.text,
        request_id=body.requestId,
    )


def edit_comment(body: EditComment) -> comments_pb2.EditCommentRequest:
    """Return the request to change the text of a comment."""
    return comments_pb2.EditCommentRequest(
        session_id=body.sessionId,
        comment_id=body.commentId,
        text=body.text,
        request_id=body.requestId,
    )


def resolve_comment(body: ResolveComment) -> comments_pb2.ResolveCommentRequest:
    """Return the request to resolve a thread, or to open it again."""
    return comments_pb2.ResolveCommentRequest(
        session_id=body.sessionId,
        comment_id=body.commentId,
        reopens=not body.resolved,
        request_id=body.requestId,
    )


def delete_comment(body: DeleteComment) -> comments_pb2.DeleteCommentRequest:
    """Return the request to delete a comment."""
    return comments_pb2.DeleteCommentRequest(
        session_id=body.sessionId, comment_id=body.commentId, request_id=body.requestId
    )


def list_comments(body: ListComments) -> comments_pb2.ListCommentsRequest:
    """Return the request to list comments."""
    return comments_pb2.ListCommentsRequest(
        session_id=body.sessionId, block_id=body.blockId, with_resolved=body.resolved
    )


def comment_added(_: AddComment, answer: comments_pb2.AddCommentResponse) -> answers.Data:
    """Return the data of comment/add."""
    return {"commentId": answer.comment_id, "revision": answer.revision}


def reply_added(_: ReplyToComment, answer: comments_pb2.ReplyToCommentResponse) -> answers.Data:
    """Return the data of comment/reply."""
    return {"commentId": answer.comment_id}


def comment_changed(
    _: OfSession,
    answer: comments_pb2.EditCommentResponse
    | comments_pb2.ResolveCommentResponse
    | comments_pb2.DeleteCommentResponse,
) -> answers.Data:
    """Return the data of comment/edit, comment/resolve and comment/delete."""
    return {"ok": True}


def threads(_: ListComments, answer: comments_pb2.ListCommentsResponse) -> answers.Data:
    """Return the data of comment/list."""
    return {
        "comments": [_thread(thread) for thread in answer.threads],
        "revision": answer.revision,
    }


def _thread(thread: comments_pb2.CommentThread) -> answers.Data:
    first, *replies = thread.comments
    data = {**_comment(first), "blockId": thread.block_id}
    if thread.HasField("quote"):
        data["quote"] = thread.quote
    if thread.HasField("offset"):
        data["offset"] = thread.offset
    data["orphaned"] = thread.is_orphaned
    data["resolved"] = thread.is_resolved
    data["replies"] = [_comment(reply) for reply in replies]
    return data


def _comment(comment: comments_pb2.Comment) -> answers.Data:
    data: answers.Data = {
        "id": comment.id,
        "text": comment.text,
        "author": {"user": comment.user_id, "name": comment.user_name},
        "own": comment.is_own,
        "time": comment.created_at_ms,
    }
    if comment.HasField("edited_at_ms"):
        data["edited"] = comment.edited_at_ms
    return data
