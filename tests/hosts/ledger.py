"""What callers were answered, by kind of request and by what happened to the hosts meanwhile."""

import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field

import aiohttp

from tests.e2e.users import Answer

# The status of a request whose connection or stream broke.
BROKEN = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has ended.

    Attributes:
        kind: what was asked.
        event: what happened to the hosts when it ended.
        caller: who asked.
        status: of the answer, or BROKEN.
        seconds: that it took.
    """

    kind: str
    event: str
    caller: str
    status: int
    seconds: float


@dataclass
class Ledger:
    """All calls.

    Attributes:
        calls: those that have ended.
        failed: how many calls have failed, beside those that a limit refused.
        event: what happens to the hosts now.
        seconds: that each event took, with the rounds after it.
        lost: acknowledged writes that were not read again, by kind.
        usage: of all callers: requests that were answered, others, and records of usage.
    """

    calls: list[Call] = field(default_factory=list)
    failed: int = 0
    event: str = "start"
    seconds: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    usage: tuple[int, int, int] = (0, 0, 0)

    async def enter(self, kind: str, caller: str, call: Awaitable[Answer]) -> Answer:
        """Await a call, and enter it; one that breaks has the status BROKEN."""
        began_at = time.monotonic()
        try:
            answer = await call
        except aiohttp.ClientError as error:
            answer = Answer(BROKEN, {"error": {"code": repr(error)}}, None)
        seconds = time.monotonic() - began_at
        self.calls.append(Call(kind, self.event, caller, answer.status, seconds))
        self.failed += answer.status not in (200, 429)
        return answer

    def failures(self, event: str) -> list[Call]:
        """Return the calls that failed during an event."""
        return [one for one in self.calls if one.event == event and one.status != 200]

    def table(self) -> str:
        """Return the table that people read."""
        return "\n".join([*self._kinds(), "", *self._events(), "", self._usage()])

    def _kinds(self) -> Iterator[str]:
        titles = ("asked", "well", "failed", "lost", "p50 ms", "p99 ms")
        yield f"{'request':16}" + "".join(f"{title:>9}" for title in titles)
        for kind in dict.fromkeys(one.kind for one in self.calls):
            calls = [one for one in self.calls if one.kind == kind]
            well = sorted(one.seconds * 1000 for one in calls if one.status == 200)
            middle, slow = (well[int(len(well) * share)] if well else 0 for share in (0.5, 0.99))
            yield (
                f"{kind:16}{len(calls):9,}{len(well):9,}{len(calls) - len(well):9,}"
                f"{self.lost[kind]:9,}{middle:9.0f}{slow:9.0f}"
            )

    def _events(self) -> Iterator[str]:
        yield f"{'event':16}{'seconds':>9}{'ended':>9}{'failed':>8}  of these, by kind and status"
        for event in dict.fromkeys(one.event for one in self.calls):
            ended = sum(one.event == event for one in self.calls)
            failures = Counter((one.kind, one.status) for one in self.failures(event))
            listed = ", ".join(
                f"{kind} {status or 'broken'}: {count}"
                for (kind, status), count in sorted(failures.items())
            )
            yield f"{event:16}{self.seconds[event]:9}{ended:9,}{failures.total():8,}  {listed}"

    def _usage(self) -> str:
        answered, others, records = self.usage
        return f"usage: {answered:,} requests answered, {others:,} not, {records:,} records"
