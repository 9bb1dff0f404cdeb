"""Responses to calls that read a document, its blocks, or its changes."""

from collections.abc import Iterable

import orjson

from gateway.articles.v1.articles_pb2 import (
    BlockSummary,
    Changes,
    ReadArticleResponse,
    ReadBlockResponse,
    ReadBlocksResponse,
    ReadChangesResponse,
)
from services.articles.cache import DocumentState
from services.articles.changes import changed_blocks
from services.articles.errors import BLOCK, failure
from services.articles.markdown import ElementRenderer, render_document
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element, element_to_json
from services.articles.tree.style import computed_style


def read_article(state: DocumentState) -> ReadArticleResponse:
    """Return a whole document."""
    document = state.document
    blocks, text = render_document(document)
    return ReadArticleResponse(
        blocks=[BlockSummary(id=block.id, type=block.type, text=block.text) for block in blocks],
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
    block = _read(state, block_id, ElementRenderer(state.document))
    if block is None:
        raise failure(BLOCK, "/blockId", "no block with this id in the document")
    return block


def read_blocks(state: DocumentState, block_ids: Iterable[str]) -> ReadBlocksResponse:
    """Return the elements that exist, in the order of `block_ids`."""
    renderer = ElementRenderer(state.document)
    read = (_read(state, block_id, renderer) for block_id in block_ids)
    return ReadBlocksResponse(
        blocks=[block for block in read if block is not None], revision=state.revision
    )


def read_changes(state: DocumentState, before: Document | None) -> ReadChangesResponse:
    """Return the changes of a document since an earlier state; None means an empty document."""
    document = state.document
    return ReadChangesResponse(
        revision=state.revision,
        changes=Changes(
            order=[block.id for block in document.blocks],
            changed=changed_blocks(before or Document(), document),
            style=orjson.dumps(document.style),
            references=orjson.dumps(list(document.references.values())),
            cited=document.blocks.cites(),
        ),
    )


def _read(
    state: DocumentState, block_id: str, renderer: ElementRenderer
) -> ReadBlockResponse | None:
    document = state.document
    path = document.path_of(block_id)
    element = None if path is None else document.node_at(path)
    if path is None or not isinstance(element, Element):
        return None
    return ReadBlockResponse(
        block=orjson.dumps(element_to_json(element)),
        path=path,
        style=orjson.dumps(computed_style(document.style, element)),
        text=renderer.block(element),
        revision=state.revision,
    )
