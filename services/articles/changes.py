"""Changed blocks between two states of a document, one derived from the other by operations."""

from services.articles.tree.document import Document


def changed_blocks(before: Document, after: Document) -> list[str]:
    """Return the ids of the top-level blocks that are new or changed, in document order.

    A block is changed when its content is, when the style of the article is, or when the number of
    a reference cited in it is. Blocks are compared by identity, since operations keep unchanged
    blocks as the same objects. A block restored by an inverse may count as changed though equal.
    """
    if before.style != after.style:
        return [block.id for block in after.blocks]
    block_ids_before = {id(block) for block in before.blocks}
    earlier = before.numbers()
    renumbered = {
        reference_id
        for reference_id, number in after.numbers().items()
        if earlier.get(reference_id) != number
    }
    return [
        block.id
        for block in after.blocks
        if id(block) not in block_ids_before or not renumbered.isdisjoint(block.cites)
    ]
