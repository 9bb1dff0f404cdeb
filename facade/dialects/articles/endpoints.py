"""The eighteen endpoints of document editing: what each takes, calls and gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from pydantic import BaseModel

from facade.dialects.articles import answers, bodies, requests

PREFIX = "/article/v1/"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint; its functions fit its types.

    Attributes:
        path: below `PREFIX`.
        rpc: the call of the ArticleEditorService it makes.
        summary: what it does, for readers.
        body: wire type of the request.
        request: makes the call's request of a body; raises GatewayError.
        answer: wire type of the answer's `data`.
        data: makes that of the body and the call's response.
    """

    path: str
    rpc: str
    summary: str
    body: type[BaseModel]
    request: Callable[[Any], Message]
    answer: type[BaseModel]
    data: Callable[[Any, Any], answers.Data]


ENDPOINTS = (
    Endpoint(
        "session/create",
        "CreateSession",
        "Open a document, for 10 minutes after the last call",
        bodies.CreateSession,
        requests.create_session,
        answers.Session,
        answers.session,
    ),
    Endpoint(
        "session/destroy",
        "DestroySession",
        "End a session",
        bodies.OfSession,
        requests.destroy_session,
        answers.Done,
        answers.done,
    ),
    Endpoint(
        "doc/list",
        "ListArticles",
        "The caller's groups and their documents",
        bodies.ListArticles,
        requests.list_articles,
        answers.Articles,
        answers.articles,
    ),
    Endpoint(
        "doc/create",
        "CreateArticle",
        "Make an empty document",
        bodies.CreateArticle,
        requests.create_article,
        answers.Created,
        answers.created,
    ),
    Endpoint(
        "doc/delete",
        "DeleteArticle",
        "Delete a document",
        bodies.DeleteArticle,
        requests.delete_article,
        answers.Deleted,
        answers.deleted,
    ),
    Endpoint(
        "doc/read",
        "ReadArticle",
        "A whole document as Markdown, with its style and references",
        bodies.OfSession,
        requests.read_article,
        answers.Document,
        answers.document,
    ),
    Endpoint(
        "doc/read-block",
        "ReadBlock",
        "One block, raw and as Markdown",
        bodies.ReadBlock,
        requests.read_block,
        answers.WholeBlock,
        answers.whole_block,
    ),
    Endpoint(
        "block/insert",
        "InsertBlocks",
        "Insert blocks, all or none",
        bodies.InsertBlocks,
        requests.insert_blocks,
        answers.Inserted,
        answers.inserted,
    ),
    Endpoint(
        "block/delete",
        "DeleteBlock",
        "Delete an element with all it holds",
        bodies.DeleteBlock,
        requests.delete_block,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "block/text/replace",
        "ReplaceText",
        "Replace what a block holds",
        bodies.ReplaceText,
        requests.replace_text,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "block/text/append",
        "AppendText",
        "Append text to a title, paragraph, abstract, heading or label",
        bodies.AppendText,
        requests.append_text,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "block/cite",
        "Cite",
        "Cite a reference, or clear a citation",
        bodies.Cite,
        requests.cite,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "reference/add",
        "AddReference",
        "Add a reference",
        bodies.AddReference,
        requests.add_reference,
        answers.ReferenceAdded,
        answers.reference_added,
    ),
    Endpoint(
        "reference/update",
        "UpdateReference",
        "Change the supplied fields of a reference; null removes one",
        bodies.UpdateReference,
        requests.update_reference,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "reference/delete",
        "DeleteReference",
        "Delete a reference, and its citations",
        bodies.DeleteReference,
        requests.delete_reference,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "block/style",
        "SetBlockStyle",
        "Change the properties of a block; null removes one",
        bodies.SetBlockStyle,
        requests.set_block_style,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "style/leaf",
        "SetLeafStyle",
        "Change the marks of text; null removes one",
        bodies.SetLeafStyle,
        requests.set_leaf_style,
        answers.Edited,
        answers.edited,
    ),
    Endpoint(
        "style/article",
        "SetArticleStyle",
        "Merge a style into the document's; null removes a part",
        bodies.SetArticleStyle,
        requests.set_article_style,
        answers.Edited,
        answers.edited,
    ),
)
