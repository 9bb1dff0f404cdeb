"""Documents and operations as bytes, and the tree's refusals as failures."""

from typing import NamedTuple

import orjson

from services.articles.errors import failure
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.operations import Operation, from_json, to_json
from services.common.errors import GatewayError


class Applied(NamedTuple):
    """What an operation made of a document, ready for the log.

    Attributes:
        document: the document as it is now.
        operation: the operation as JSON.
        inverse: what takes it back, as JSON.
        ids: what was made: the roots of inserted blocks in order, or the added reference.
    """

    document: Document
    operation: bytes
    inverse: bytes
    ids: tuple[str, ...]


def apply(document: Document, operation: Operation) -> Applied:
    """Apply a caller's operation.

    Raises:
        GatewayError: what the tree refuses; nothing has changed.
    """
    try:
        change = operation.apply(document)
    except EditError as refusal:
        raise told(refusal) from None
    return Applied(
        change.document,
        orjson.dumps(to_json(operation)),
        orjson.dumps(to_json(change.inverse)),
        change.ids,
    )


def replay(document: Document, operation: bytes) -> Document:
    """Apply an operation of the log, which was applied before."""
    return from_json(orjson.loads(operation)).apply(document).document


def encode_document(document: Document) -> bytes:
    """Return a document as it is stored."""
    return orjson.dumps(document.to_json())


def decode_document(content: bytes) -> Document:
    """Read what `encode_document` wrote."""
    return Document.from_json(orjson.loads(content))


def told(refusal: EditError) -> GatewayError:
    """Return the failure that a refusal of the tree is to a caller."""
    problem = refusal.message.removeprefix(f"{refusal.pointer}: ")
    return failure(int(refusal.code), refusal.pointer, problem)
