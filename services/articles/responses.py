"""The responses to reading a document and a block."""

import orjson

from gateway.articles.v1.articles_pb2 import (
    BlockSummary,
    ReadArticleResponse,
    ReadBlockResponse,
)
from services.articles.cache import DocumentState
from services.articles.errors import BLOCK, failure
from services.articles.markdown import render_block, render_document
from services.articles.style import computed_style
from services.articles.tree.nodes import Element, element_to_json


def read_article(state: DocumentState) -> ReadArticleResponse:
    """Return a whole document."""
    document = state.document
    blocks, text = render_document(document)
    return ReadArticleResponse(
        blocks=[BlockSummary(id=one.id, type=one.type, text=one.text) for one in blocks],
        text=text,
        style=orjson.dumps(document.style),
        references=orjson.dumps(list(document.references.values())),
        version=document.version,
        revision=state.revision,
    )


def read_block(state: DocumentState, block_id: str) -> ReadBlockResponse:
    """Return one element.

    Raises:
        GatewayError: 40403.
    """
    document = state.document
    path = document.path_of(block_id)
    element = None if path is None else document.node_at(path)
    if path is None or not isinstance(element, Element):
        raise failure(BLOCK, "/blockId", "no block of the document has this id")
    return ReadBlockResponse(
        block=orjson.dumps(element_to_json(element)),
        path=path,
        style=orjson.dumps(computed_style(document.style, element)),
        text=render_block(document, element),
        revision=state.revision,
    )
