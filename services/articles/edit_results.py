"""Results of edits, and their message."""

from typing import NamedTuple

from gateway.articles.v1 import articles_pb2 as wire


class EditResult(NamedTuple):
    """The result of an edit.

    Attributes:
        revision: the revision of the document right after the edit.
        ids: ids of the blocks or of the references that the edit added, if any.
        ids_of_edits: if several edits were applied together, the ids of each.
    """

    revision: int
    ids: tuple[str, ...] = ()
    ids_of_edits: tuple[tuple[str, ...], ...] = ()

    def to_message(self) -> wire.ApplyEditResponse:
        """Return the response for the caller."""
        return wire.ApplyEditResponse(
            revision=self.revision,
            ids=self.ids,
            results=[wire.EditResult(ids=ids) for ids in self.ids_of_edits],
        )

    @classmethod
    def of(cls, message: wire.ApplyEditResponse) -> "EditResult":
        """Return the result in a response."""
        ids_of_edits = tuple([tuple(result.ids) for result in message.results])
        return cls(message.revision, tuple(message.ids), ids_of_edits)
