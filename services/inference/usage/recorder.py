"""Records usage: sends the lines of the journal as records, in batches.

A line is written to the journal before the answer of its request ends. Every few seconds the
journal's file is closed, and the records of its lines are sent to the accounts service, which skips
records that it has already; then the file is deleted. Records that cannot be sent are sent later.
So are those of ended processes with the same data folder.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from gateway.errors.v1 import errors_pb2
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.messages.usage_batch import UsageBatch
from services.common.settings import Usage
from services.inference.pricing.costs import Costs
from services.inference.usage.journal import Journal, LineWriter, chunks_of
from services.inference.usage.metrics import UsageMetrics
from services.inference.usage.model_names import ModelNames
from services.inference.usage.records import BatchMaker

# Records per batch; a batch is sent once it has at least as many.
_RECORDS_AT_ONCE = 900
_SETTLE_S = 5.0
# Seconds between two pieces of a file, so that requests meanwhile do not wait for several pieces.
# It allows 20,000 lines a second, which is several times what a worker writes.
_PAUSE_S = 0.001
# Rounds between two searches for files of processes that have ended.
_ROUNDS_PER_SEARCH = 5
# Reasons of errors after which a batch is sent again.
_PASSING = frozenset(
    {
        errors_pb2.REASON_UNAVAILABLE,
        errors_pb2.REASON_TIMEOUT,
        errors_pb2.REASON_STORAGE_FULL,
    }
)

log = logging.getLogger(__name__)

# Stores a batch of records; may be called again with a batch that failed.
Send = Callable[[UsageBatch], Awaitable[None]]


class UsageRecorder:
    """Records the usage of the requests of this process.

    Args:
        data_dir: the data folder.
        settings: the interval of batches, and the maximum size of the journal.
        clock: the clock.
        costs: returns the costs by the settings in force.
        send: stores a batch.
        metrics: counts tokens, costs and lost records.
        is_offered: as of `ModelNames`.
        new_id: makes the name of this process's journal.

    Attributes:
        metrics: as the argument.
        lines: writes the lines.
    """

    def __init__(
        self,
        data_dir: Path,
        settings: Usage,
        clock: Clock,
        costs: Callable[[], Costs],
        send: Send,
        metrics: UsageMetrics,
        is_offered: Callable[[str], bool],
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._name = new_id("")
        self._journal = Journal(data_dir, self._name, settings.max_journal_bytes)
        self._every_s = settings.write_every_s
        self._costs = costs
        self._send = send
        self.metrics = metrics
        self.lines = LineWriter(self._journal, clock.now, metrics.dropped)
        self._model_names = ModelNames(is_offered, clock.now)
        self._pause_s = _PAUSE_S
        # The last flush of a process may begin during a regular one.
        self._flushing = asyncio.Lock()
        self._numbers = itertools.count()

    async def run(self) -> None:
        """Record lines at intervals, forever."""
        for number in itertools.count():
            try:
                await self.flush(takes_over=number % _ROUNDS_PER_SEARCH == 0)
            except GatewayError as error:
                log.warning(
                    "usage could not be recorded yet and will be retried",
                    extra={"error": error.message},
                )
            except Exception:
                log.exception("usage could not be recorded")
            await asyncio.sleep(self._every_s)

    async def flush(self, *, takes_over: bool = False) -> None:
        """Record all lines, and with `takes_over` those of processes that have ended.

        Raises:
            GatewayError: unavailable; the next call tries the remaining lines again.
        """
        async with self._flushing:
            await self._flush(takes_over=takes_over)

    async def _flush(self, *, takes_over: bool) -> None:
        self._journal.rotate()
        self.metrics.journal_bytes.set(self._journal.closed_bytes)
        if held_lines := self.lines.take_held():
            try:
                await self._record(f"{self._name}-m{next(self._numbers)}", chunks_of(held_lines))
            except GatewayError:
                self.lines.put_back(held_lines)
                raise
        while (file := self._journal.oldest()) is not None:
            await self._record(file.name, file.lines())
            self._journal.remove_oldest()
        self.metrics.journal_bytes.set(self._journal.closed_bytes)
        if takes_over:
            await self._take_over()

    async def settle(self) -> None:
        """Record all lines before the process ends, within `_SETTLE_S` seconds."""
        self._pause_s = 0  # there are no more requests
        try:
            async with asyncio.timeout(_SETTLE_S):
                await self.flush()
        except (GatewayError, TimeoutError) as error:
            log.warning(
                "usage could not be recorded before the process ended; another process will "
                "record it",
                extra={"error": str(error)},
            )

    def close(self) -> None:
        """Leave lines that are not recorded to another process, or to the next start."""
        self._journal.close()

    async def _take_over(self) -> None:
        for file in self._journal.abandoned():
            try:
                await self._record(file.name, file.lines())
            except BaseException:
                file.release()
                raise
            file.remove()
            log.info("usage of an ended process was recorded", extra={"file": file.name})

    async def _record(self, file: str, chunks: Iterable[Sequence[bytes]]) -> None:
        """Send the records of the lines of a file."""
        maker = BatchMaker(file, self._costs(), self._model_names)
        number = 0
        for lines in chunks:
            for error in maker.add(lines, number):
                # Perhaps of another version. It must not block the others.
                log.error("a line of the usage journal cannot be read", extra={"error": str(error)})
                self.metrics.dropped.inc()
            number += len(lines)
            if maker.batch.size >= _RECORDS_AT_ONCE:
                await self._send_batch(maker.batch)
                maker = BatchMaker(file, self._costs(), self._model_names)
            await asyncio.sleep(self._pause_s)
        if maker.batch.size:
            await self._send_batch(maker.batch)

    async def _send_batch(self, batch: UsageBatch) -> None:
        try:
            await self._send(batch)
        except GatewayError as error:
            if error.reason in _PASSING:
                raise
            log.error("usage records were rejected", extra={"error": error.message})
            self.metrics.dropped.inc(batch.size)
        else:
            self.metrics.count(batch)
