"""The endpoints of document editing: request type, RPC and response type."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.protobuf.message import Message
from pydantic import BaseModel

from facade.dialects.articles import answers, bodies, requests
from gateway.articles.v1.edits_pb2 import Edit

PREFIX = "/article/v1/"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint.

    Attributes:
        path: path below `PREFIX`.
        operation_id: the operationId in the OpenAPI document.
        rpc: name of the RPC of the ArticleEditorService.
        summary: summary in the OpenAPI document.
        body: wire type of the request.
        request: converts the body to the RPC's request; raises GatewayError.
        answer: wire type of the response's `data`.
        data: returns `data` for the body and the RPC's response.
    """

    path: str
    operation_id: str
    rpc: str
    summary: str
    body: type[BaseModel]
    request: Callable[[Any], Message]
    answer: type[BaseModel]
    data: Callable[[Any, Any], answers.Data]


def _edit_request(edit: Callable[[Any], Edit], body: bodies.EditBody) -> Message:
    return requests.apply_edit(body, edit(body))


def _edit(
    path: str,
    operation_id: str,
    summary: str,
    body: type[bodies.EditBody],
    edit: Callable[[Any], Edit],
    answer: type[BaseModel] = answers.Edited,
    data: Callable[[Any, Any], answers.Data] = answers.edited,
) -> Endpoint:
    """Return the endpoint of an edit; `edit` translates the body."""
    request = partial(_edit_request, edit)
    return Endpoint(path, operation_id, "ApplyEdit", summary, body, request, answer, data)


ENDPOINTS = (
    Endpoint(
        "session/create",
        "createSession",
        "CreateSession",
        "Open a document; the session expires 10 minutes after the last call",
        bodies.CreateSession,
        requests.create_session,
        answers.Session,
        answers.session,
    ),
    Endpoint(
        "session/destroy",
        "destroySession",
        "DestroySession",
        "End a session",
        bodies.OfSession,
        requests.destroy_session,
        answers.Done,
        answers.done,
    ),
    Endpoint(
        "doc/list",
        "listArticles",
        "ListArticles",
        "List the caller's groups and their documents",
        bodies.ListArticles,
        requests.list_articles,
        answers.Articles,
        answers.articles,
    ),
    Endpoint(
        "doc/create",
        "createArticle",
        "CreateArticle",
        "Create an empty document",
        bodies.CreateArticle,
        requests.create_article,
        answers.Created,
        answers.created,
    ),
    Endpoint(
        "doc/delete",
        "deleteArticle",
        "DeleteArticle",
        "Delete a document",
        bodies.DeleteArticle,
        requests.delete_article,
        answers.Deleted,
        answers.deleted,
    ),
    Endpoint(
        "doc/read",
        "readArticle",
        "ReadArticle",
        "Get a document as Markdown, with its style and references",
        bodies.OfSession,
        requests.read_article,
        answers.Document,
        answers.document,
    ),
    Endpoint(
        "doc/read-block",
        "readBlock",
        "ReadBlock",
        "Get a block as JSON and as Markdown",
        bodies.ReadBlock,
        requests.read_block,
        answers.WholeBlock,
        answers.whole_block,
    ),
    Endpoint(
        "doc/read-blocks",
        "readBlocks",
        "ReadBlocks",
        "Get several blocks as JSON and as Markdown; deleted blocks are omitted",
        bodies.ReadBlocks,
        requests.read_blocks,
        answers.Blocks,
        answers.blocks,
    ),
    Endpoint(
        "doc/changes",
        "readChanges",
        "ReadChanges",
        "List the ids of all blocks, and of those changed since a revision",
        bodies.ReadChanges,
        requests.read_changes,
        answers.DocumentChanges,
        answers.changes,
    ),
    _edit(
        "block/insert",
        "insertBlocks",
        "Insert blocks, all or none",
        bodies.InsertBlocks,
        requests.insert_blocks,
        answers.Inserted,
        answers.inserted,
    ),
    _edit(
        "block/delete",
        "deleteBlock",
        "Delete an element and its descendants",
        bodies.DeleteBlock,
        requests.delete_block,
    ),
    _edit(
        "block/text/replace",
        "replaceText",
        "Replace the content of a block",
        bodies.ReplaceText,
        requests.replace_text,
    ),
    _edit(
        "block/text/append",
        "appendText",
        "Append text to a title, paragraph, abstract, heading or label",
        bodies.AppendText,
        requests.append_text,
    ),
    _edit(
        "block/cite",
        "cite",
        "Cite a reference, or clear a citation",
        bodies.Cite,
        requests.cite,
    ),
    _edit(
        "reference/add",
        "addReference",
        "Add a reference",
        bodies.AddReference,
        requests.add_reference,
        answers.ReferenceAdded,
        answers.reference_added,
    ),
    _edit(
        "reference/update",
        "updateReference",
        "Update the given fields of a reference; null removes a field",
        bodies.UpdateReference,
        requests.update_reference,
    ),
    _edit(
        "reference/delete",
        "deleteReference",
        "Delete a reference and its citations",
        bodies.DeleteReference,
        requests.delete_reference,
    ),
    _edit(
        "block/style",
        "setBlockStyle",
        "Update the properties of a block; null removes a property",
        bodies.SetBlockStyle,
        requests.set_block_style,
    ),
    _edit(
        "style/leaf",
        "setLeafStyle",
        "Update the marks of text; null removes a mark",
        bodies.SetLeafStyle,
        requests.set_leaf_style,
    ),
    _edit(
        "style/article",
        "setArticleStyle",
        "Merge a style into the document's style; null removes a value",
        bodies.SetArticleStyle,
        requests.set_article_style,
    ),
)
