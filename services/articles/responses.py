"""Responses to calls that read a document, its blocks, or its changes."""

from collections.abc import Iterable
from typing import Any

import orjson

from gateway.articles.v1.articles_pb2 import (
    BlockSummary,
    Changes,
    ExportReferencesRequest,
    ExportReferencesResponse,
    ReadArticleRequest,
    ReadArticleResponse,
    ReadBlockResponse,
    ReadBlocksResponse,
    ReadChangesResponse,
)
from services.articles.bibliography.formats import FORMATS
from services.articles.cache import DocumentState
from services.articles.changes import changed_blocks
from services.articles.edit_results import omission_messages
from services.articles.errors import BLOCK, FIELDS, SCHEMA, failure
from services.articles.markdown import ElementRenderer, joined
from services.articles.tree.document import Document
from services.articles.tree.edits import BIBLIOGRAPHY_FORMATS
from services.articles.tree.errors import EditErrorCode
from services.articles.tree.labels import ref_text
from services.articles.tree.nodes import Element, element_to_json
from services.articles.tree.style import computed_style
from services.common.articles import limits


def read_article(state: DocumentState, request: ReadArticleRequest) -> ReadArticleResponse:
    """Return the requested blocks of a document, or all of them.

    Raises:
        GatewayError: 40003, 40004.
    """
    document = state.document
    renderer = ElementRenderer(
        document, with_images=not request.without_images, with_keys=request.with_keys
    )
    blocks = renderer.blocks(_requested(document, request))
    return ReadArticleResponse(
        blocks=[BlockSummary(id=block.id, type=block.type, text=block.text) for block in blocks],
        text=joined(blocks),
        style=orjson.dumps(document.style),
        references=orjson.dumps(list(document.references.values())),
        version=document.version,
        revision=state.revision,
        properties=orjson.dumps(document.properties),
    )


def _requested(document: Document, request: ReadArticleRequest) -> Iterable[Element]:
    if request.block_ids:
        if request.first or request.HasField("limit"):
            raise failure(FIELDS, "/blockIds", "cannot be combined with from and limit")
        if len(request.block_ids) > limits.BLOCKS_A_READ:
            raise failure(SCHEMA, "/blockIds", f"must contain 1 to {limits.BLOCKS_A_READ} ids")
        elements = map(document.element, request.block_ids)
        return [element for element in elements if element is not None]
    if not request.first and not request.HasField("limit"):
        return document.blocks
    if request.HasField("limit") and not request.limit:
        raise failure(SCHEMA, "/limit", "must be at least 1")
    length = len(document.blocks)
    stop = min(length, request.first + request.limit) if request.HasField("limit") else length
    return [document.blocks[position] for position in range(request.first, stop)]


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
            properties=orjson.dumps(document.properties),
            labels=orjson.dumps(_shown_labels(document)),
        ),
    )


def _shown_labels(document: Document) -> dict[str, dict[str, str]]:
    language = document.properties.get("language")
    return {
        label: {
            "text": ref_text(number, None, language),
            "number": ref_text(number, "number", language),
        }
        for label, number in document.label_numbers().items()
    }


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


def export_references(
    state: DocumentState, request: ExportReferencesRequest
) -> ExportReferencesResponse:
    """Return references in a format of bibliographies.

    Raises:
        GatewayError: 40004, the format is missing; 40404, there is no such reference.
    """
    name = BIBLIOGRAPHY_FORMATS.get(request.format)
    if name is None:
        raise failure(FIELDS, "/format", "is required")
    references: Any = state.document.references
    for index, reference_id in enumerate(request.reference_ids):
        if reference_id not in references:
            problem = "no reference with this id in the document"
            raise failure(EditErrorCode.NO_REFERENCE, f"/referenceIds/{index}", problem)
    ids = dict.fromkeys(request.reference_ids) or references
    written = FORMATS[name].write([references[reference_id] for reference_id in ids])
    return ExportReferencesResponse(
        text=written.text,
        omitted=omission_messages(written.omitted[: limits.OMISSIONS]),
        revision=state.revision,
    )
