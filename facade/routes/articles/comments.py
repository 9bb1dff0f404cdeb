"""The endpoints of comments on documents."""

from facade.dialects.articles import answer_types, comments
from facade.routes.articles.call import rpc_endpoint

ENDPOINTS = (
    rpc_endpoint(
        "comment/add",
        "addComment",
        "AddComment",
        "Add a comment on an element, or on a passage that it follows through edits",
        comments.AddComment,
        comments.add_comment,
        comments.CommentAdded,
        comments.comment_added,
    ),
    rpc_endpoint(
        "comment/reply",
        "replyToComment",
        "ReplyToComment",
        "Reply to a comment",
        comments.ReplyToComment,
        comments.reply_to_comment,
        comments.ReplyAdded,
        comments.reply_added,
    ),
    rpc_endpoint(
        "comment/edit",
        "editComment",
        "EditComment",
        "Change the text of a comment of the caller's",
        comments.EditComment,
        comments.edit_comment,
        answer_types.Done,
        comments.comment_changed,
    ),
    rpc_endpoint(
        "comment/resolve",
        "resolveComment",
        "ResolveComment",
        "Resolve a thread of comments, or open it again",
        comments.ResolveComment,
        comments.resolve_comment,
        answer_types.Done,
        comments.comment_changed,
    ),
    rpc_endpoint(
        "comment/delete",
        "deleteComment",
        "DeleteComment",
        "Delete a comment with its replies",
        comments.DeleteComment,
        comments.delete_comment,
        answer_types.Done,
        comments.comment_changed,
    ),
    rpc_endpoint(
        "comment/list",
        "listComments",
        "ListComments",
        "List the comments of a document, with the places where their passages are now",
        comments.ListComments,
        comments.list_comments,
        comments.Threads,
        comments.threads,
    ),
)
