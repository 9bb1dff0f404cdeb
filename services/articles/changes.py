"""Changed blocks between two states of a document, one derived from the other by operations."""

from services.articles.tree.document import Document
from services.articles.tree.nodes import Element, all_leaves


def changed_blocks(before: Document, after: Document) -> list[str]:
    """Return the ids of the top-level blocks that are new or changed, in document order.

    A block is changed when its content is, when the style or the language of the article is, or
    when it shows a number or names that are: of a reference, or of a block. Blocks are compared by
    identity, since operations keep unchanged blocks as the same objects. A block restored by an
    inverse may count as changed though equal.
    """
    if before.style != after.style or _language(before) != _language(after):
        return [block.id for block in after.blocks]
    block_ids_before = {id(block) for block in before.blocks}
    reference_ids = _changed_references(before, after)
    labels = changed_labels(before, after)
    return [
        block.id
        for block in after.blocks
        if id(block) not in block_ids_before
        or not reference_ids.isdisjoint(block.cites)
        or (labels and names_any(block, labels))
    ]


def _language(document: Document) -> object:
    return document.properties.get("language")


def _changed_references(before: Document, after: Document) -> set[str]:
    """Return the ids of references with other numbers, or with other authors."""
    earlier = before.numbers()
    changed = {
        reference_id
        for reference_id, number in after.numbers().items()
        if earlier.get(reference_id) != number
    }
    if before.references is not after.references:
        changed.update(
            reference_id
            for reference_id, reference in after.references.items()
            if reference is not (old := before.references.get(reference_id))
            and old is not None
            and old.get("author") != reference.get("author")
        )
    return changed


def changed_labels(before: Document, after: Document) -> set[str]:
    """Return the labels of blocks with other numbers, or that only one of the documents has."""
    if not (before.blocks.has_labels() or after.blocks.has_labels()):
        return set()
    earlier, later = before.label_numbers(), after.label_numbers()
    return {
        label for label in earlier.keys() | later.keys() if earlier.get(label) != later.get(label)
    }


def names_any(block: Element, labels: set[str]) -> bool:
    """Return whether a text in a block refers to one of some blocks."""
    return any(leaf.ref in labels for leaf in all_leaves(block))
