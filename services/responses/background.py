"""Responses that are generated in the background, by the process that accepted them.

A response is durable before its caller is answered, and leased to this process while it is
generated. Callers' keys are not stored, so no other process could continue a response: if this
process dies, it is marked as failed, and it is never generated again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.memory.v1.responses_pb2 import CreateBackgroundResponse
from services.common.errors import GatewayError, invalid
from services.common.grpc.channels import Metadata
from services.common.process.byte_budget import ByteBudget, Charge
from services.responses.generation import Generation
from services.responses.rendering import MakeRenderer, Renderer
from services.responses.runs import ResponseRuns

# Seconds that stopped generations have to store their results.
_STOPPING_S = 0.5


class UserSlots:
    """The background responses of each user in one process.

    Args:
        max_running: maximum number of responses that are generated for one user at a time.
        max_queued: maximum number of further responses of a user that wait for that.
        count: called with 1 when a response is admitted, and with -1 when it has ended.
    """

    def __init__(self, max_running: int, max_queued: int, count: Callable[[int], object]) -> None:
        self._count = count
        self._max_running = max_running
        self._max_queued = max_queued
        self._admitted: Counter[str] = Counter()
        self._slots: dict[str, asyncio.Semaphore] = {}

    @contextmanager
    def admitted(self, user_id: str) -> Iterator[None]:
        """Count a response of a user; context manager.

        Raises:
            GatewayError: rate_limited, the user has as many running and queued ones as allowed.
        """
        max_admitted = self._max_running + self._max_queued
        if self._admitted[user_id] >= max_admitted:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"background: {max_admitted} of your responses are already queued or in "
                "progress, the maximum; try again when one has finished",
                param="background",
                limit="limits.max_queued_responses",
            )
        self._admitted[user_id] += 1
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
            self._admitted[user_id] -= 1
            if not self._admitted[user_id]:
                del self._admitted[user_id]
                self._slots.pop(user_id, None)

    def slot(self, user_id: str) -> asyncio.Semaphore:
        """Return what an admitted response acquires to be generated: first come, first served."""
        slots = self._slots.get(user_id)
        if slots is None:
            slots = self._slots[user_id] = asyncio.Semaphore(self._max_running)
        return slots


class BackgroundResponses:
    """The responses that one process generates in the background.

    Args:
        runs: stores the responses, and holds their leases.
        slots: limits the responses of each user.
        inference: generates the answers.
        budget: limits the bytes that the process holds.
        make_renderer: makes the renderer of a response.
    """

    def __init__(
        self,
        runs: ResponseRuns,
        slots: UserSlots,
        inference: "inference_pb2_grpc.InferenceServiceAsyncStub",
        budget: ByteBudget,
        make_renderer: MakeRenderer,
    ) -> None:
        self._runs = runs
        self._slots = slots
        self._inference = inference
        self._budget = budget
        self._make_renderer = make_renderer
        self._tasks: dict[asyncio.Task[None], Generation] = {}

    async def begin(
        self,
        owner_id: str,
        max_bytes: int,
        create: CreateBackgroundResponse,
        request: GenerateRequest,
        metadata: Metadata,
    ) -> Generation:
        """Store a response as queued, and start its generation.

        Args:
            owner_id: the user.
            max_bytes: the storage quota.
            create: the response, whose `content` is set.
            request: what it is generated from.
            metadata: metadata of the call that generates it.

        Raises:
            GatewayError: rate_limited, the user has too many background responses; as
                `Charge.reserve` and `ResponseRuns.run`; invalid.
        """
        async with AsyncExitStack() as resources:
            resources.enter_context(self._slots.admitted(owner_id))
            charge = resources.enter_context(Charge(self._budget, owner_id))
            charge.reserve(create.ByteSize() + request.ByteSize())
            renderer, first_events = self._queued(create)
            run = await resources.enter_async_context(
                self._runs.run(owner_id, max_bytes, create.response)
            )
            begin_call = partial(self._inference.StreamGenerate, request, metadata=metadata)
            slot = self._slots.slot(owner_id)
            generation = Generation(
                run, renderer, charge, slot, begin_call, first_events if create.stream else b""
            )
            task = asyncio.create_task(_run(generation, resources.pop_all()))
        self._tasks[task] = generation
        task.add_done_callback(self._tasks.pop)
        return generation

    async def drain(self, within_s: float) -> None:
        """Wait for the responses for at most `within_s` seconds, then stop the others."""
        await self._ended(within_s)
        for generation in list(self._tasks.values()):
            generation.stop()
        await self._ended(_STOPPING_S)
        for task in list(self._tasks):
            task.cancel()

    def _queued(self, create: CreateBackgroundResponse) -> tuple[Renderer, bytes]:
        """Set the content of a response, which is queued; return its renderer and first events.

        Raises:
            GatewayError: invalid.
        """
        try:
            renderer = self._make_renderer(create.response.id, create.presentation)
            first_events = renderer.begin()
            create.response.content.CopyFrom(renderer.content())
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise invalid(
                "create.presentation", "create.presentation: must be what the facade writes"
            ) from None
        return renderer, first_events

    async def _ended(self, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while self._tasks and (left_s := end - loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left_s)


async def _run(generation: Generation, resources: AsyncExitStack) -> None:
    async with resources:
        await generation.run()
