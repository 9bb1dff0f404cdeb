"""Patches of a document by blocks: what an edit changes, to be applied later.

A patch is taken from two states of a document, before and after an edit. Applied to the first, it
makes the second; applied to a later state, it changes the same blocks, and is refused if one of
them, or a place between blocks, is no longer what it was. All other blocks may have changed.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import orjson
from msgspec import Struct

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import (
    Element,
    Json,
    element_from_json,
    element_to_json,
    shown_files,
    walk,
)
from services.articles.tree.operations.base import Change, DocumentEdit
from services.articles.tree.operations.bibliography import (
    AddReference,
    DeleteReference,
    UpdateReference,
)
from services.articles.tree.operations.blocks import DeleteBlocks, InsertBlocks, RestoreElements
from services.articles.tree.operations.moves import MoveElements
from services.articles.tree.operations.properties import SetProperties
from services.articles.tree.operations.stored import ApplyEdits
from services.articles.tree.operations.styles import SetArticleStyle
from services.articles.tree.references import Reference
from services.articles.tree.style import Style

# Bytes of the hash of a block.
_DIGEST = 16


class BlockRun(NamedTuple):
    """Blocks that come after another one.

    Attributes:
        after_id: id of the block before them; "" at the beginning of the document.
        blocks: new blocks, and the ids of blocks that move here.
    """

    after_id: str
    blocks: tuple[Element | str, ...]


class BlockPatch(Struct, frozen=True):
    """The difference of two states of a document; it is an edit.

    Attributes:
        changed: later states of blocks, by their ids.
        removed: ids of blocks that are removed, or inserted again by a run.
        digests: hashes of the earlier states of both.
        runs: new and moved blocks, in document order.
        references: earlier and later states of references, by their ids; None for none.
        style: the earlier and the later style of the document, if it changes.
        properties: the same for its properties.
    """

    changed: Mapping[str, Element]
    removed: tuple[str, ...]
    digests: Mapping[str, str]
    runs: tuple[BlockRun, ...]
    references: Mapping[str, tuple[Reference | None, Reference | None]]
    style: tuple[Style, Style] | None
    properties: tuple[Mapping[str, Json], Mapping[str, Json]] | None

    @classmethod
    def between(cls, before: Document, after: Document) -> Self:
        """Return what makes the second document of the first."""
        earlier = {block.id: block for block in before.blocks}
        later = {block.id: block for block in after.blocks}
        changed = {
            block_id: block
            for block_id, block in later.items()
            if block_id in earlier and block is not earlier[block_id] and block != earlier[block_id]
        }
        removed = [block_id for block_id in earlier if block_id not in later]
        exchanging = _exchanging({**changed, **{key: earlier[key] for key in removed}}, earlier)
        replaced = [block_id for block_id in changed if block_id in exchanging]
        for block_id in replaced:
            del changed[block_id]
        gone = {*removed, *replaced}
        staying = _longest_in_order([*earlier], [key for key in later if key not in gone])
        return cls(
            changed=changed,
            removed=(*removed, *replaced),
            digests={key: _digest(earlier[key]) for key in (*changed, *removed, *replaced)},
            runs=tuple(_runs(later, earlier, gone, staying)),
            references=_changed_references(before.references, after.references),
            style=_changed(before.style, after.style),
            properties=_changed(before.properties, after.properties),
        )

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        of_document = self.references or self.style or self.properties
        return not (self.changed or self.removed or self.runs or of_document)

    def files(self) -> frozenset[str]:
        """Return the ids of the files that its blocks show once it is applied."""
        inserted = [block for run in self.runs for block in run.blocks]
        blocks = [*self.changed.values(), *(one for one in inserted if not isinstance(one, str))]
        return frozenset(file_id for block in blocks for file_id in shown_files(block))

    def apply(self, document: Document) -> Change:
        """Apply all or nothing.

        Raises:
            EditError: 40907, a block or a place of it is not what it was; 40003, the document would
                be too large.
        """
        self._check(document)
        edits: list[DocumentEdit] = []
        references = list(self.references.items())
        edits += [DeleteReference(key) for key, (old, new) in references if old and not new]
        edits += [AddReference(new) for _, (old, new) in references if new and not old]
        edits += [
            UpdateReference(key, _merge_patch(old, new))
            for key, (old, new) in references
            if old and new
        ]
        if self.style is not None:
            edits.append(SetArticleStyle(_merge_patch(*self.style)))
        if self.properties is not None:
            edits.append(SetProperties(_merge_patch(*self.properties)))
        # Before these, since they may cite new references; elements of removed blocks may be in
        # inserted ones.
        if self.changed:
            edits.append(RestoreElements(tuple(self.changed.values())))
        edits += [DeleteBlocks((block_id,)) for block_id in self.removed]
        edits += [_InsertAfter(run.after_id, part) for run in self.runs for part in _parts(run)]
        try:
            change = ApplyEdits(tuple(edits)).apply(document)
        except EditError as error:
            raise EditError(error.code, "/suggestionId", error.problem) from None
        return Change(change.document, change.inverse, operation=change.operation)

    def _check(self, document: Document) -> None:
        for block_id, digest in self.digests.items():
            block = document.element(block_id) if document.parents.get(block_id) == "" else None
            if block is None or _digest(block) != digest:
                raise _stale(f"block {block_id} has been changed since")
        for run in self.runs:
            moved_ids = [block for block in run.blocks if isinstance(block, str)]
            for block_id in (*moved_ids, run.after_id):
                if block_id and document.parents.get(block_id) != "":
                    raise _stale(f"block {block_id} is no longer there")
        for reference_id, (earlier, _) in self.references.items():
            if document.references.get(reference_id) != earlier:
                raise _stale(f"reference {reference_id} has been changed since")
        if self.style is not None and document.style != self.style[0]:
            raise _stale("the style of the document has been changed since")
        if self.properties is not None and document.properties != self.properties[0]:
            raise _stale("the properties of the document have been changed since")

    def to_json(self) -> dict[str, Json]:
        """Return the patch as JSON for storage."""
        return {
            "changed": [element_to_json(block) for block in self.changed.values()],
            "removed": list(self.removed),
            "digests": dict(self.digests),
            "runs": [
                [
                    run.after_id,
                    [
                        block if isinstance(block, str) else element_to_json(block)
                        for block in run.blocks
                    ],
                ]
                for run in self.runs
            ],
            "references": {key: list(states) for key, states in self.references.items()},
            "style": None if self.style is None else list(self.style),
            "properties": None if self.properties is None else list(self.properties),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; nothing is checked."""
        changed = [element_from_json(block) for block in stored["changed"]]
        return cls(
            changed={block.id: block for block in changed},
            removed=tuple(stored["removed"]),
            digests=stored["digests"],
            runs=tuple(
                [
                    BlockRun(
                        after_id,
                        tuple(
                            [
                                block if isinstance(block, str) else element_from_json(block)
                                for block in blocks
                            ]
                        ),
                    )
                    for after_id, blocks in stored["runs"]
                ]
            ),
            references={key: (old, new) for key, (old, new) in stored["references"].items()},
            style=_both(stored["style"]),
            properties=_both(stored["properties"]),
        )


class _InsertAfter(Struct, frozen=True):
    """Insert new blocks, or move one, to right after another block."""

    after_id: str
    blocks: tuple[Element, ...] | str

    def apply(self, document: Document) -> Change:
        blocks = self.blocks
        if isinstance(blocks, str):
            at = document.blocks.position_of(blocks)
            target = _position_after(document, self.after_id)
            move = MoveElements((blocks,), (target - (at < target),))
            change = move.apply(document)
            return Change(change.document, change.inverse, operation=move)
        insertion = InsertBlocks((_position_after(document, self.after_id),), blocks)
        change = insertion.apply(document)
        return Change(change.document, change.inverse, operation=insertion)


def _position_after(document: Document, block_id: str) -> int:
    return document.blocks.position_of(block_id) + 1 if block_id else 0


def _parts(run: BlockRun) -> Iterator[tuple[Element, ...] | str]:
    """Yield the blocks of a run from the last to the first, adjacent new ones together."""
    new: list[Element] = []
    for block in reversed(run.blocks):
        if isinstance(block, Element):
            new.insert(0, block)
            continue
        if new:
            yield tuple(new)
            new = []
        yield block
    if new:
        yield tuple(new)


def _runs(
    later: Mapping[str, Element],
    earlier: Mapping[str, Element],
    gone: set[str],
    staying: set[str],
) -> Iterator[BlockRun]:
    after_id, blocks = "", list[Element | str]()
    for block_id, block in later.items():
        if block_id in staying:
            if blocks:
                yield BlockRun(after_id, tuple(blocks))
            after_id, blocks = block_id, []
        elif block_id in earlier and block_id not in gone:
            blocks.append(block_id)
        else:
            blocks.append(block)
    if blocks:
        yield BlockRun(after_id, tuple(blocks))


def _exchanging(blocks: Mapping[str, Element], earlier: Mapping[str, Element]) -> set[str]:
    """Return the ids of the blocks from which, or to which, elements in them have moved."""
    homes = {element.id: block_id for block_id in blocks for element in walk(earlier[block_id])}
    exchanging = set()
    for block_id, block in blocks.items():
        for element in walk(block):
            home = homes.get(element.id, block_id)
            if home != block_id:
                exchanging |= {home, block_id}
    return exchanging


def _longest_in_order(order: Sequence[str], block_ids: Sequence[str]) -> set[str]:
    """Return the largest part of some ids that has the same order among others."""
    positions = {block_id: position for position, block_id in enumerate(order)}
    kept_ids = [block_id for block_id in block_ids if block_id in positions]
    # The last of the best sequence of each length, and what comes before each id in its sequence.
    tails: list[int] = []
    tail_ids: list[str] = []
    previous: dict[str, str | None] = {}
    for block_id in kept_ids:
        position = positions[block_id]
        at = bisect_left(tails, position)
        previous[block_id] = tail_ids[at - 1] if at else None
        tails[at : at + 1] = [position]
        tail_ids[at : at + 1] = [block_id]
    longest = set()
    last = tail_ids[-1] if tail_ids else None
    while last is not None:
        longest.add(last)
        last = previous[last]
    return longest


def _changed_references(
    before: Mapping[str, Reference], after: Mapping[str, Reference]
) -> dict[str, tuple[Reference | None, Reference | None]]:
    if before is after:
        return {}
    return {
        key: (before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    }


def _changed(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the earlier and the later state of an object; None if it is the same."""
    return None if before == after else (before, after)


def _both(stored: Sequence[Any] | None) -> tuple[Any, Any] | None:
    return None if stored is None else (stored[0], stored[1])


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7396) that makes the second object of the first."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if key in before and old == value:
            continue
        if isinstance(value, Mapping):
            value = _merge_patch(old if isinstance(old, Mapping) else {}, value)
        patch[key] = value
    return patch


def _digest(block: Element) -> str:
    content = orjson.dumps(element_to_json(block), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(content, digest_size=_DIGEST).hexdigest()


def _stale(problem: str) -> EditError:
    return EditError(EditErrorCode.SUGGESTION_STALE, "/suggestionId", problem)
