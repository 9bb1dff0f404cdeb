"""The ids that edits make, in later edits of the same request.

An edit names a block that an earlier one inserts by a position: `$2.0` is the first id of the third
edit.
"""

import re
from collections.abc import Sequence

from gateway.articles.v1 import edits_pb2 as pb
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.operations import DocumentEdit, InsertBlocks, WriteMarkdown

_POSITION = re.compile(r"\$(\d{1,3})\.(\d{1,3})", re.ASCII)
_POINTERS = {"block_id": "/blockId", "anchor_id": "/anchorId", "before_id": "/beforeId"}
# The fields of each kind of edit that may hold a position. A message is not asked for fields that
# it does not have, which takes longer than to read those that it has.
_FIELDS = {
    kind.name: [field.name for field in kind.message_type.fields if field.name in _POINTERS]
    for kind in pb.Edit.DESCRIPTOR.fields
    if kind.message_type is not None
}


def with_made_ids(message: pb.Edit, edits: Sequence[DocumentEdit]) -> pb.Edit:
    """Return an edit with ids in place of positions; an edit without them as it is.

    Args:
        message: the edit.
        edits: the earlier edits of the request.

    Raises:
        EditError: no earlier edit makes an id with that position.
    """
    kind = message.WhichOneof("kind") or ""
    ids: dict[str, str | list[str]] = {}
    for name in _FIELDS.get(kind, ()):
        block_id = getattr(getattr(message, kind), name)
        if block_id.startswith("$"):
            ids[name] = _made_id(block_id, edits, _POINTERS[name])
    if kind == "convert_blocks":
        ids["block_ids"] = [
            _made_id(block_id, edits, join_pointer("/blockIds", index))
            for index, block_id in enumerate(message.convert_blocks.block_ids)
        ]
    if not ids:
        return message
    changed = pb.Edit()
    changed.CopyFrom(message)
    fields = getattr(changed, kind)
    for name in ids:
        fields.ClearField(name)
    fields.MergeFrom(type(fields)(**ids))
    return changed


def _made_id(block_id: str, edits: Sequence[DocumentEdit], pointer: str) -> str:
    """Return the id at a position, or an id that is no position as it is."""
    position = _POSITION.fullmatch(block_id)
    if position is None:
        return block_id
    ids = _made_ids(edits, int(position[1]))
    if int(position[2]) >= len(ids):
        problem = f"no earlier edit makes this id; edit {position[1]} makes {len(ids)}"
        raise EditError(EditErrorCode.NO_BLOCK, pointer, problem)
    return ids[int(position[2])]


def _made_ids(edits: Sequence[DocumentEdit], index: int) -> tuple[str, ...]:
    edit = edits[index] if index < len(edits) else None
    if not isinstance(edit, InsertBlocks | WriteMarkdown):
        return ()
    return tuple([block.id for block in edit.blocks])
