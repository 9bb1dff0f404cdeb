"""Results of edits, and their message."""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.bibliography.entries import Omission
from services.articles.tree.operations import EditOutcome
from services.common.articles import limits


class EditResult(NamedTuple):
    """The result of an edit.

    Attributes:
        revision: the revision of the document right after the edit.
        outcome: what the edit made.
        of_edits: if several edits were applied together, what each made.
        suggestion_id: id of the suggestion that was stored instead; otherwise "".
    """

    revision: int
    outcome: EditOutcome = EditOutcome()
    of_edits: tuple[EditOutcome, ...] = ()
    suggestion_id: str = ""

    def to_message(self) -> wire.ApplyEditResponse:
        """Return the response for the caller."""
        response = wire.ApplyEditResponse(
            revision=self.revision, ids=self.outcome.ids, suggestion_id=self.suggestion_id
        )
        if self.outcome.omitted:
            response.omitted.extend(omission_messages(self.outcome.omitted))
        for each in self.of_edits:
            result = response.results.add()
            # Most edits make no block, and setting nothing takes most of the time.
            if each.ids:
                result.ids.extend(each.ids)
            if each.omitted:
                result.omitted.extend(omission_messages(each.omitted))
        return response

    def to_import(self) -> wire.ImportArticleResponse:
        """Return the response for the caller of an import: of references, and of blocks."""
        response = wire.ImportArticleResponse(
            revision=self.revision, ids=self.outcome.ids, suggestion_id=self.suggestion_id
        )
        if self.of_edits:
            references, blocks = self.of_edits
            response.reference_ids.extend(references.ids)
            response.ids.extend(blocks.ids)
            omitted = (*references.omitted, *blocks.omitted)
            response.omitted.extend(omission_messages(omitted[: limits.OMISSIONS]))
        return response

    @classmethod
    def of(cls, message: wire.ApplyEditResponse) -> "EditResult":
        """Return the result in a response."""
        of_edits = tuple([_outcome(result) for result in message.results])
        return cls(message.revision, _outcome(message), of_edits, message.suggestion_id)


def omission_messages(omitted: Iterable[Omission]) -> list[wire.Omission]:
    """Return omissions as messages."""
    return [wire.Omission(place=place, reason=reason) for place, reason in omitted]


def _outcome(message: wire.ApplyEditResponse | wire.EditResult) -> EditOutcome:
    omitted = tuple([Omission(one.place, one.reason) for one in message.omitted])
    return EditOutcome(tuple(message.ids), omitted)
