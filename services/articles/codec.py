"""Decodes and applies edits, and encodes documents and operations for storage."""

import time
import zlib
from itertools import islice
from typing import NamedTuple

import orjson

from gateway.articles.v1.edits_pb2 import Edit
from services.articles.errors import SCHEMA, failure
from services.articles.tree.block_patches import BlockPatch
from services.articles.tree.document import Document
from services.articles.tree.edits import read_edit
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import element_to_json
from services.articles.tree.operations import (
    DocumentEdit,
    EditOutcome,
    from_json,
    stored_form,
    to_json,
)
from services.articles.tree.parsing import NewId
from services.common.articles import limits
from services.common.errors import GatewayError

# Blocks of a snapshot that are encoded at once, which takes half a millisecond, and the pause
# after them. A pause of no time would not let other threads run.
_ENCODED_AT_ONCE = 100
_PAUSE_S = 1e-4
# The fastest: higher ones save little.
_LEVEL = 1


class AppliedOperation(NamedTuple):
    """The result of applying an operation, ready for the log.

    Attributes:
        document: the document with the operation applied.
        operation: the operation as JSON.
        inverse: the operation that undoes it, as JSON.
        outcome: what the edit made.
        of_edits: see `Change`.
    """

    document: Document
    operation: bytes
    inverse: bytes
    outcome: EditOutcome
    of_edits: tuple[EditOutcome, ...]


def decode_edit(edit: Edit, new_id: NewId) -> DocumentEdit:
    """Return the edit that a caller's message describes.

    Raises:
        GatewayError: the edit is invalid for every document.
    """
    try:
        return read_edit(edit, new_id)
    except EditError as error:
        raise to_gateway_error(error) from None


def apply(document: Document, edit: DocumentEdit) -> AppliedOperation:
    """Apply a caller's edit.

    Raises:
        GatewayError: the edit does not fit the document, which is unchanged.
    """
    try:
        change = edit.apply(document)
    except EditError as error:
        raise to_gateway_error(error) from None
    # Before they are written: a few edits can copy a document many times.
    if change.copied_characters > limits.COPIED:
        problem = f"would store more than {limits.COPIED} characters again; edit smaller parts"
        raise failure(SCHEMA, "", problem)
    return AppliedOperation(
        change.document,
        orjson.dumps(to_json(stored_form(edit, change))),
        orjson.dumps(to_json(change.inverse)),
        EditOutcome(change.ids, change.omitted),
        change.of_edits,
    )


def suggested_patch(
    document: Document, edit: DocumentEdit
) -> tuple[BlockPatch, EditOutcome, tuple[EditOutcome, ...]]:
    """Return what a caller's edit would change, its outcome, and those of its edits.

    Raises:
        GatewayError: the edit does not fit the document.
    """
    try:
        change = edit.apply(document)
    except EditError as error:
        raise to_gateway_error(error) from None
    patch = BlockPatch.between(document, change.document)
    return patch, EditOutcome(change.ids, change.omitted), change.of_edits


def replay(document: Document, operation: bytes) -> Document:
    """Apply an operation from the log again."""
    return from_json(orjson.loads(operation)).apply(document).document


class EncodedDocument(NamedTuple):
    """The stored form of a document.

    Attributes:
        content: its JSON, compressed.
        size_bytes: the size of the JSON.
    """

    content: bytes
    size_bytes: int


def encode_document(document: Document) -> EncodedDocument:
    """Return the stored form of a document; to be called in a thread of its own.

    The thread gives way after some blocks each: an edit that is made meanwhile waits for it several
    times. The JSON is compressed, as no edit can be stored while it is written.
    """
    compressor = zlib.compressobj(_LEVEL)
    others = orjson.dumps(document.to_json_without_blocks())
    parts = [compressor.compress(b'%b,"blocks":[' % others[:-1])]
    size = len(others) + len(',"blocks":[]')
    blocks = iter(document.blocks)
    separator = b""
    while part := list(islice(blocks, _ENCODED_AT_ONCE)):
        encoded = orjson.dumps([element_to_json(block) for block in part])[1:-1]
        parts.append(compressor.compress(separator + encoded))
        size += len(separator) + len(encoded)
        separator = b","
        time.sleep(_PAUSE_S)
    parts += compressor.compress(b"]}"), compressor.flush()
    return EncodedDocument(b"".join(parts), size)


def decode_document(content: bytes) -> Document:
    """Parse the content that `encode_document` returns."""
    return Document.from_json(orjson.loads(zlib.decompress(content)))


def to_gateway_error(error: EditError) -> GatewayError:
    """Return the error that callers get for an edit error."""
    return failure(int(error.code), error.pointer, error.problem)
