"""Builds the context of a turn for the model: profile, summary, turns and snippets."""

import asyncio
import logging
from collections.abc import Sequence

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.memory.v1 import memory_pb2
from gateway.memory.v1.memory_pb2 import TurnContext
from services.common.errors import GatewayError, invalid
from services.common.process.byte_budget import Admit
from services.common.process.offload import offload_if
from services.common.settings import Memory
from services.common.text.tokens import estimate_tokens
from services.memory.archive.archive import QuestionVector, excerpt
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import NO_SUMMARY, Summary
from services.memory.jobs.task_client import TaskClient
from services.memory.jobs.windows import Windows
from services.memory.metrics import MemoryMetrics
from services.memory.profile.facts import profile_text
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.messages import is_user_turn_start
from services.memory.storage.stored_turns import (
    StoredTurn,
    have_many_messages,
    to_model_messages,
    user_text,
)
from services.memory.turns.reconciliation import Reconciliation

log = logging.getLogger(__name__)


class ContextReader:
    """Reads the contexts of turns.

    Args:
        stores: the stores of the database.
        tasks: embeds questions, if an embedding model is configured.
        settings: bounds on retrieval and on the size of the context.
        metrics: the metrics of the service.
    """

    def __init__(
        self, stores: Stores, tasks: TaskClient, settings: Memory, metrics: MemoryMetrics
    ) -> None:
        self._stores = stores
        self._metrics = metrics
        self._tasks = tasks
        self._settings = settings

    async def read(
        self,
        owner_id: str,
        record: MemoryRecord | None,
        reconciliation: Reconciliation,
        windows: Windows,
        *,
        with_profile: bool,
        newest: Sequence[StoredTurn] = (),
        admit: Admit | None = None,
        summary: Summary | None = None,
    ) -> TurnContext:
        """Return the context of a request's turn.

        Args:
            owner_id: the user.
            record: the memory; None outside of any.
            reconciliation: how the request continues it.
            windows: which turns are shown.
            with_profile: whether the profile is shown.
            newest: the newest stored turns, which are not read again.
            admit: called with the bytes of further stored turns before they are read.
            summary: the current summary of the memory, if it has been read.

        Raises:
            GatewayError: invalid, when no message of the turn can be sent to a model.
        """
        turns = reconciliation.turns
        if record is not None and record.summarised:
            if reconciliation.rewinds and reconciliation.changed <= record.summarised:
                # The newest one of turns that the request leaves unchanged.
                summary = await self._stores.summaries.before(record.id, reconciliation.changed)
            elif summary is None:
                summary = await self._stores.summaries.current(record.id)
        summary = summary or NO_SUMMARY
        view = windows.view(turns[-1].number - 1, summary.last_turn)
        if record is not None:
            shown = range(view.raw.start, turns[0].number)
            turns = [*await self._stored(record, shown, newest, admit), *turns]
        context = await offload_if(have_many_messages(turns), build_context, turns)
        if with_profile:
            context.profile = profile_text(await self._stores.facts.of(owner_id))
        if record is not None and view.summarised:
            context.summary = summary.text
            await self._retrieve(owner_id, record, turns[-1], view.raw.start, context)
        return context

    async def embed_question(self, owner_id: str, question: str) -> QuestionVector | None:
        """Return the vector of a question; None when no model returns one in time."""
        if not self._tasks.can_embed:
            return None
        try:
            async with asyncio.timeout(self._settings.embed_wait_s):
                embedding = await self._tasks.embed(owner_id, [question], is_query=True)
        except (GatewayError, TimeoutError) as error:
            # Retrieval by words alone is better than failing or delaying the request.
            reason = error.code if isinstance(error, GatewayError) else "timeout"
            log.warning("a question could not be embedded", extra={"reason": reason})
            return None
        return QuestionVector(embedding.model, embedding.vectors[0])

    async def _stored(
        self,
        record: MemoryRecord,
        shown: range,
        newest: Sequence[StoredTurn],
        admit: Admit | None,
    ) -> list[StoredTurn]:
        """Return the stored turns with the numbers in `shown`."""
        if newest and newest[0].number <= shown.start:
            return [turn for turn in newest if turn.number in shown]
        if not shown:
            return []
        return await self._stores.repository.turns(record.id, shown.start, shown.stop - 1, admit)

    async def _retrieve(
        self,
        owner_id: str,
        record: MemoryRecord,
        turn: StoredTurn,
        first_raw: int,
        context: TurnContext,
    ) -> None:
        """Add archived turns that are relevant to the user's text in a turn."""
        question = excerpt(user_text(turn.messages))
        used = estimate_tokens(context.profile) + estimate_tokens(context.summary)
        room = min(self._settings.retrieve_tokens, self._settings.inject_tokens - used)
        if not question or not self._settings.retrieve_top_k or room <= 0:
            return
        with self._metrics.retrieval_s.time():
            snippets = await self._stores.archive.search(
                owner_id,
                record.id,
                question,
                before_turn=first_raw,
                limit=self._settings.retrieve_top_k,
                max_tokens=room,
                vector=await self.embed_question(owner_id, question),
            )
        for snippet in snippets:
            context.snippets.add(**snippet._asdict())


def build_context(turns: Sequence[StoredTurn]) -> TurnContext:
    """Return the context of the last of some turns, which has those before it.

    Raises:
        GatewayError: invalid, when no message of the last turn can be sent to a model.
    """
    *earlier, present = turns
    context = TurnContext(messages=to_model_messages(present.messages))
    if not context.messages:
        raise invalid("messages", "messages: a user message is required")
    for index, message in enumerate(context.messages):
        if is_user_turn_start(message):
            context.newest_user_message_index = index
    for turn in earlier:
        if messages := to_model_messages(turn.messages):
            context.turns.append(turn_to_proto(turn, messages))
    return context


def turn_to_proto(turn: StoredTurn, messages: Sequence[Message] | None = None) -> memory_pb2.Turn:
    """Return the protobuf message of a turn; `messages` replace its stored messages."""
    return memory_pb2.Turn(
        number=turn.number,
        messages=turn.messages if messages is None else messages,
        created_at_ms=turn.created_at_ms,
        open=turn.open,
    )
