"""What differs between two states of a document, of which one came from the other by operations."""

from services.articles.tree.document import Document


def changed_blocks(before: Document, after: Document) -> list[str]:
    """Return the ids of the top-level blocks that are new or read otherwise, in order.

    A block reads otherwise when it is another one, when the style of the article is, or when a
    reference cited in it has another number. Operations leave what they don't touch the very same
    objects, so that identity tells; restored by an inverse, a block may seem changed that is equal.
    """
    if before.style != after.style:
        return [block.id for block in after.blocks]
    known = {id(block) for block in before.blocks}
    earlier = before.numbers()
    renumbered = {
        reference_id
        for reference_id, number in after.numbers().items()
        if earlier.get(reference_id) != number
    }
    return [
        block.id
        for block in after.blocks
        if id(block) not in known or not renumbered.isdisjoint(block.cites)
    ]
