"""Calls that wait for a transaction, and how those of one transaction are applied."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from msgspec.structs import replace

from services.articles import codec
from services.articles.cache import DocumentState
from services.articles.edit_results import EditResult
from services.articles.errors import block_changed, no_suggestion, stale
from services.articles.operation_log import LogEntry
from services.articles.repeats import RepeatableRequest, RequestKey, StoredRequest
from services.articles.sessions import LiveSession, SessionRef
from services.articles.tree.nodes import Element
from services.articles.tree.operations import DocumentEdit
from services.articles.usage import size_of
from services.common.errors import GatewayError
from services.common.storage.shown_files import ShownFile


class EditConditions(NamedTuple):
    """Conditions of an edit, checked when it is applied.

    Attributes:
        revision: the revision of the document.
        block: a block with its id as in the document, position aside.
        suggestion_id: a suggestion that is pending, and is accepted by the edit.
    """

    revision: int | None = None
    block: Element | None = None
    suggestion_id: str | None = None

    def check(self, state: DocumentState, pending_ids: Collection[str] = ()) -> None:
        """Check the conditions for a document, with the ids of pending suggestions.

        Raises:
            GatewayError: 40901; 40411.
        """
        if self.suggestion_id is not None and self.suggestion_id not in pending_ids:
            raise no_suggestion()
        if self.revision not in (None, state.revision):
            raise stale(state.revision)
        if self.block is not None and state.document.element(self.block.id) != self.block:
            raise block_changed(state.revision)


NO_CONDITIONS = EditConditions()


class CallKind(Enum):
    """The effect of a call, besides extending the expiry of its session."""

    KEEP_ALIVE = auto()
    READ = auto()
    EDIT = auto()


# KEEP_ALIVE is answered by None, READ by a state, EDIT by a result.
CallAnswer = DocumentState | EditResult | None


@dataclass(eq=False, slots=True)
class Call:
    """A call that waits for a transaction; its session says which client makes it."""

    kind: CallKind
    session: SessionRef
    answer: "asyncio.Future[CallAnswer]"
    edit: DocumentEdit | None = None
    conditions: EditConditions = NO_CONDITIONS
    request: RepeatableRequest | None = None
    attempts: int = 0
    client_id: str = ""

    def fail(self, error: Exception) -> None:
        """Answer the call with an error, unless it was cancelled."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class Transaction:
    """The work of one transaction, whose calls are answered after the commit.

    Attributes:
        sessions: a session of each document, by the document's id.
        initial: the documents as they were.
        states: the documents, with the edits of the transaction applied.
        entries: the operations to append to the log.
        stored_requests: requests of the calls that were answered before.
        new_requests: requests of the calls that are answered now.
        pending_ids: suggestions that can be accepted.
        accepted_ids: suggestions that are.
        results: the calls that succeed, with their results.
        errors: the calls that fail, with their errors.
    """

    sessions: dict[str, LiveSession] = field(default_factory=dict)
    initial: dict[str, DocumentState] = field(default_factory=dict)
    states: dict[str, DocumentState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    stored_requests: dict[RequestKey, StoredRequest] = field(default_factory=dict)
    new_requests: dict[RequestKey, StoredRequest] = field(default_factory=dict)
    pending_ids: set[str] = field(default_factory=set)
    accepted_ids: list[str] = field(default_factory=list)
    results: list[tuple[Call, CallAnswer]] = field(default_factory=list)
    errors: list[tuple[Call, Exception]] = field(default_factory=list)

    def shown_files(self) -> tuple[set[ShownFile], set[ShownFile]]:
        """Return the files that the documents show since this transaction, and those no longer."""
        shown: set[ShownFile] = set()
        hidden: set[ShownFile] = set()
        for article_id in {entry.article_id for entry in self.entries}:
            before = self.initial[article_id].document.blocks.files()
            after = self.states[article_id].document.blocks.files()
            shown.update(ShownFile(article_id, file_id) for file_id in after - before)
            hidden.update(ShownFile(article_id, file_id) for file_id in before - after)
        return shown, hidden

    def refuse(self, error: GatewayError) -> None:
        """Answer the only call with an error, and store nothing of it."""
        [(call, _)] = self.results
        for changes in (
            *(self.states, self.entries, self.new_requests, self.accepted_ids),
            self.results,
        ):
            changes.clear()
        self.errors.append((call, error))


def apply_calls(calls: Sequence[tuple[Call, str]], transaction: Transaction) -> None:
    """Apply calls in order, each to the document whose id is given with it."""
    for call, article_id in calls:
        state = transaction.states[article_id]
        if call.edit is None:
            transaction.results.append((call, state))
            continue
        try:
            result = _repeated(call, article_id, transaction)
            if result is None:
                result = _applied(call, call.edit, article_id, transaction)
        except Exception as error:
            # Any exception fails this call alone.
            transaction.errors.append((call, error))
        else:
            transaction.results.append((call, result))


def request_key(call: Call, article_id: str) -> RequestKey | None:
    """Return the key by which the answer of a call is stored, or None if it is not."""
    if call.request is None:
        return None
    return RequestKey(article_id, call.session.user_id, call.request.id)


def _repeated(call: Call, article_id: str, transaction: Transaction) -> EditResult | None:
    """Return the result of an earlier call with the same request id.

    Raises:
        GatewayError: 40905, that was another request.
    """
    key = request_key(call, article_id)
    if key is None or call.request is None:
        return None
    stored = transaction.new_requests.get(key) or transaction.stored_requests.get(key)
    return None if stored is None else stored.result_for(call.request)


def _applied(
    call: Call, edit: DocumentEdit, article_id: str, transaction: Transaction
) -> EditResult:
    """Return the result of an edit that is applied to its document."""
    state = transaction.states[article_id]
    call.conditions.check(state, transaction.pending_ids)
    applied = codec.apply(state.document, edit)
    if state.document.is_same(applied.document):
        # Nothing to log: the edit is answered as one that was made, at the same revision.
        result = EditResult(state.revision, applied.outcome, applied.of_edits)
    else:
        result = EditResult(state.revision + 1, applied.outcome, applied.of_edits)
        transaction.states[article_id] = replace(
            state,
            document=applied.document,
            revision=result.revision,
            tail_operations=state.tail_operations + 1,
            tail_bytes=state.tail_bytes + len(applied.operation),
            log_bytes=state.log_bytes + size_of(applied.operation, applied.inverse),
        )
        entry = (article_id, result.revision, call.session.user_id)
        logged = (applied.operation, applied.inverse, call.client_id)
        transaction.entries.append(LogEntry(*entry, *logged))
    if call.conditions.suggestion_id is not None:
        transaction.pending_ids.remove(call.conditions.suggestion_id)
        transaction.accepted_ids.append(call.conditions.suggestion_id)
    key = request_key(call, article_id)
    if key is not None and call.request is not None:
        transaction.new_requests[key] = StoredRequest(call.request.fingerprint, result)
    return result
