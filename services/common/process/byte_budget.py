"""The budget of bytes that a process holds for requests, and its shares of users.

It covers the bodies that are read and what requests name: stored files, responses, conversations
and memories, converted media and fetched addresses. A body that finds no room is refused. What a
request names is charged before it is loaded, and the request waits for room.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, Self, TypeVar

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Limits

_SHARE_LIMIT = "limits.max_buffered_bytes_per_user"
_TOTAL_LIMIT = "limits.max_buffered_bytes"
# Called with a number of bytes before they are loaded; waits until they may be, or raises.
Admit = Callable[[int], Awaitable[None]]
SizedT = TypeVar("SizedT", bound="Sized")
# Retry-After in seconds; most bodies are read and sent on sooner.
_RETRY_AFTER_S = 1


class Charge:
    """The bytes that one request holds; a context manager, which releases them.

    Args:
        budget: the budget of the process.
        user_id: the user whose share they are part of.
        outer: a charge of the same request, held as long.

    Attributes:
        user_id: see the argument.
        size: the number of bytes.
    """

    __slots__ = ("_budget", "_outer", "size", "user_id")

    def __init__(self, budget: "ByteBudget", user_id: str, outer: "Charge | None" = None) -> None:
        self._budget = budget
        self._outer = outer
        self.user_id = user_id
        self.size = 0

    @property
    def of_request(self) -> int:
        """The number of bytes that the request holds in all."""
        return self.size if self._outer is None else self.size + self._outer.of_request

    def __enter__(self) -> Self:
        """Return the charge."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release all bytes."""
        self.release()

    def reserve(self, size: int) -> None:
        """Add bytes at once.

        Raises:
            GatewayError: rate_limited, the user's other requests leave no room; unavailable,
                those of all users leave none.
        """
        self._budget.reserve(self, size)

    async def acquire(self, size: int) -> None:
        """Add bytes once there is room; requests of one user wait in order, users take turns.

        Raises:
            GatewayError: as `reserve`, if there was no room in time.
        """
        await self._budget.acquire(self, size)

    def at(self, cost: int) -> Admit:
        """Return a function that acquires `cost` bytes for each byte."""

        async def admit(size: int) -> None:
            await self.acquire(cost * size)

        return admit

    def release(self, size: int | None = None) -> None:
        """Release bytes, by default all."""
        self._budget.release(self, self.size if size is None else size)


# The charge of the request that the current task serves; unset if it has none.
request_charge: ContextVar[Charge | None] = ContextVar("request_charge", default=None)
# The charge of the response that the current task reads for a caller of this process, which is
# released once the response has been sent; unset if there is none.
response_charge: ContextVar[Charge | None] = ContextVar("response_charge", default=None)


# Bytes of stored items that a request may load without a charge, as most conversations are small.
UNCHARGED = 64 << 10


class Sized(Protocol):
    """What is loaded, or only its size.

    Attributes:
        omitted_bytes: its size in bytes, if it is larger than was asked for and was not loaded.
    """

    @property
    def omitted_bytes(self) -> int:
        """See the attribute."""
        ...


async def load_charged(
    charge: Charge, cost: int, load: Callable[[int], Awaitable[SizedT]]
) -> SizedT:
    """Load stored items, which are charged before, unless they are small.

    Args:
        charge: the bytes that the request holds.
        cost: the bytes that are charged for each byte of the items.
        load: loads the items if they have at most a number of bytes.

    Raises:
        GatewayError: as `load` and `Charge.acquire`.
    """
    admitted = 0
    loaded = await load(UNCHARGED)
    # Usually once; more often if they grow meanwhile.
    while omitted := loaded.omitted_bytes:
        await charge.acquire(cost * (omitted - admitted))
        admitted = omitted
        loaded = await load(admitted)
    return loaded


@contextmanager
def reading_charge(budget: "ByteBudget", user_id: str) -> Iterator[Charge]:
    """Return the charge of what a call reads: that of the response, else one for the call alone."""
    charge = response_charge.get()
    if charge is not None:
        yield charge
        return
    with Charge(budget, user_id) as charge:
        yield charge


class ByteBudget:
    """Counts the bytes held for requests, per user and in total, and lets requests wait.

    A request that holds bytes alone is always admitted; its size is limited elsewhere. This applies
    to its user's share if no other request of the user holds bytes, and to the total if no other
    request does.

    Requests that hold bytes already are admitted before others of their user, since they release
    them sooner. If such requests wait for one another, the first whose time is over is refused.

    Args:
        total: maximum bytes of all users.
        per_user: maximum bytes of one user.
        max_wait_s: maximum seconds that a request waits for room.
        timeout: creates the timeout of a waiting request.
    """

    def __init__(
        self,
        total: int,
        per_user: int,
        max_wait_s: float,
        timeout: Callable[[float], asyncio.Timeout] = asyncio.timeout,
    ) -> None:
        self._total = total
        self._per_user = per_user
        self._max_wait_s = max_wait_s
        self._timeout = timeout
        self._held = 0
        self._of_users: dict[str, int] = {}
        # The waiting requests of each user in order.
        self._waiting: dict[str, deque[_Waiter]] = {}
        # Users whose first waiting request fits into their share, in order of their turns.
        self._ready: OrderedDict[str, None] = OrderedDict()

    @property
    def held(self) -> int:
        """Bytes that are held now."""
        return self._held

    @property
    def waiting(self) -> int:
        """Number of requests that wait for room."""
        return sum(map(len, self._waiting.values()))

    def reserve(self, charge: Charge, size: int) -> None:
        """Add bytes to a charge at once; see `Charge.reserve`."""
        if not self._fits_share(charge, size):
            raise self._share_exceeded(charge)
        if not self._fits_total(charge, size):
            raise _total_exceeded()
        self._add(charge, size)

    async def acquire(self, charge: Charge, size: int) -> None:
        """Add bytes to a charge once there is room; see `Charge.acquire`."""
        user_id = charge.user_id
        if user_id not in self._waiting and self._fits_share(charge, size):
            if not self._ready and self._fits_total(charge, size):
                self._add(charge, size)
                return
        waiter = _Waiter(charge, size)
        queue = self._waiting.setdefault(user_id, deque())
        if charge.of_request:
            queue.appendleft(waiter)
        else:
            queue.append(waiter)
        self._admit(user_id)
        try:
            async with self._timeout(self._max_wait_s):
                await waiter.admitted
        except TimeoutError:
            if waiter.is_admitted:
                return  # at the same moment
            self._forget(waiter)
            if not self._fits_share(charge, size):
                raise self._share_exceeded(charge) from None
            raise _total_exceeded() from None
        except asyncio.CancelledError:
            if waiter.is_admitted:  # at the same moment
                self.release(charge, size)
            else:
                self._forget(waiter)
            raise

    def release(self, charge: Charge, size: int) -> None:
        """Release bytes of a charge, and admit requests that wait for them."""
        if not size:
            return
        charge.size -= size
        remaining = self._of_users.pop(charge.user_id) - size
        if remaining:
            self._of_users[charge.user_id] = remaining
        self._held -= size
        self._admit(charge.user_id)

    def _add(self, charge: Charge, size: int) -> None:
        charge.size += size
        self._of_users[charge.user_id] = self._of_users.get(charge.user_id, 0) + size
        self._held += size

    def _fits_share(self, charge: Charge, size: int) -> bool:
        of_user = self._of_users.get(charge.user_id, 0)
        return of_user <= charge.of_request or of_user + size <= self._per_user

    def _fits_total(self, charge: Charge, size: int) -> bool:
        return self._held <= charge.of_request or self._held + size <= self._total

    def _admit(self, user_id: str) -> None:
        """Admit waiting requests, after a change of a user's bytes or queue."""
        self._update_turn(user_id)
        while self._ready:
            first = next(iter(self._ready))
            waiter = self._waiting[first][0]
            if not self._fits_total(waiter.charge, waiter.size):
                return  # so that large requests get their turn
            self._remove(waiter)
            if not waiter.admitted.done():  # it is done if the request has just left
                self._add(waiter.charge, waiter.size)
                waiter.admitted.set_result(None)
            del self._ready[first]  # to the end of the turns
            self._update_turn(first)

    def _update_turn(self, user_id: str) -> None:
        """Add a user to the turns if the first of its waiting requests fits into its share."""
        queue = self._waiting.get(user_id)
        if queue and self._fits_share(queue[0].charge, queue[0].size):
            self._ready.setdefault(user_id)
        else:
            self._ready.pop(user_id, None)

    def _forget(self, waiter: "_Waiter") -> None:
        """Remove a waiting request that has left."""
        self._remove(waiter)
        self._admit(waiter.charge.user_id)

    def _remove(self, waiter: "_Waiter") -> None:
        user_id = waiter.charge.user_id
        queue = self._waiting.get(user_id)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[user_id]

    def _share_exceeded(self, charge: Charge) -> GatewayError:
        others = self._of_users.get(charge.user_id, 0) - charge.of_request
        return GatewayError(
            errors_pb2.REASON_RATE_LIMITED,
            f"the bodies of your concurrent requests and what they name already use {others:,} of "
            f"at most {self._per_user:,} bytes; try again in a moment",
            retry_after_s=_RETRY_AFTER_S,
            limit=_SHARE_LIMIT,
        )


def is_over_budget(error: GatewayError) -> bool:
    """Return whether an error is raised by a budget of bytes."""
    return error.limit in (_SHARE_LIMIT, _TOTAL_LIMIT)


def open_budget(limits: Limits) -> ByteBudget:
    """Return the budget of a process."""
    return ByteBudget(
        limits.max_buffered_bytes, limits.max_buffered_bytes_per_user, limits.max_buffer_wait_s
    )


class _Waiter:
    """A request that waits for room, by identity."""

    __slots__ = ("admitted", "charge", "size")

    def __init__(self, charge: Charge, size: int) -> None:
        self.charge = charge
        self.size = size
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_admitted(self) -> bool:
        return self.admitted.done() and not self.admitted.cancelled()


def _total_exceeded() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_UNAVAILABLE,
        "too many large requests are being served; try again in a moment",
        retry_after_s=_RETRY_AFTER_S,
        limit=_TOTAL_LIMIT,
    )
