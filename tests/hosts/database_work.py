"""Measure what requests ask of PostgreSQL: `python -m tests.hosts.database_work [COUNT [batch]]`.

It runs a gateway of one worker, and prints per request: round trips, transactions, statements that
read and that write, the time that the server took for statements and its CPU time, bytes of its log
(WAL) and bytes that stay. With `batch` only a batch of ten times as many requests is measured,
beside as many chats that a caller sends eight at a time, and the statements that took most time in
each. Work in the background that belongs to a request (usage records, jobs of memories) is in;
polls without work are measured alone, and taken off.
"""

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import asyncpg

from tests.bench import processes
from tests.databases import PostgreSQL, postgresql_server
from tests.e2e.users import Answer, User
from tests.gateway_in_process import running_gateway
from tests.hosts.cluster import ADMIN_KEY, Administrator
from tests.hosts.round_trips import CountingProxy, counting_proxy
from tests.hosts.server_log import LOG_ALL, ServerLog
from tests.hosts.statements import StatementCounts, counting_statements
from tests.waiting import until

REQUESTS = 200
# As many requests of a user as a worker runs of a batch.
AT_ONCE = 8
IDLE_S = 20.0
CONTENT = b"x" * 10_000
TEXT = "What the user says in one turn of a conversation. " * 10

Ask = Callable[[int], Awaitable[Answer]]


@dataclass(frozen=True)
class Work:
    """The database server's work, in all or per request."""

    round_trips: float
    transactions: float
    reads: float
    writes: float
    server_ms: float
    cpu_ms: float
    log_bytes: float
    stored_bytes: float

    def less(self, other: "Work", factor: float) -> "Work":
        """Return this without so many times the other."""
        return Work(*(a - factor * b for a, b in zip(self.values, other.values, strict=True)))

    def per(self, count: float) -> "Work":
        """Return the part of one of so many."""
        return Work(*(value / count for value in self.values))

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(vars(self).values())


class Meter:
    """Reads what a server has done so far."""

    def __init__(
        self,
        connection: "asyncpg.Connection",
        postmaster: int,
        counts: StatementCounts,
        proxy: CountingProxy,
        server_log: ServerLog,
    ) -> None:
        self._proxy = proxy
        self._server_log = server_log
        self._connection = connection
        self._postmaster = postmaster
        self._counts = counts

    async def read(self) -> Work:
        """Return all work until now."""
        log, size = await self._connection.fetchrow(
            "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, sum(pg_total_relation_size(oid)) "
            "FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        cpu_s = processes.cpu_seconds(processes.family(self._postmaster))
        cpu_s += _ended_cpu_seconds(self._postmaster)
        counts = self._counts
        self._server_log.read()
        return Work(
            *(self._proxy.round_trips, counts.commits, counts.reads, counts.writes),
            *(self._server_log.milliseconds, 1000 * cpu_s, float(log), float(size)),
        )

    async def is_settled(self) -> bool:
        """Return whether no work is left from earlier requests."""
        jobs = await self._connection.fetchval("SELECT count(*) FROM memory_jobs")
        return jobs == 0

    async def idle(self) -> Work:
        """Return the work of a second without requests."""
        before, began = await self.read(), time.monotonic()
        await asyncio.sleep(IDLE_S)
        return (await self.read()).less(before, 1).per(time.monotonic() - began)

    async def of(self, ask: Ask, count: int, idle: Work) -> Work:
        """Return the work of a request."""
        await ask(0)  # what is done once for a user
        before, began = await self.read(), time.monotonic()
        for number in range(1, count + 1):
            answer = await ask(number)
            assert answer.status == 200, answer
        # Usage is written once in two seconds.
        await asyncio.sleep(2.5)
        await until(self.is_settled, every_s=0.1)
        work = (await self.read()).less(before, 1)
        return work.less(idle, time.monotonic() - began).per(count)

    async def of_many(self, ask: Ask, count: int, idle: Work) -> Work:
        """Return the work of a request, of which some are in progress at any time."""
        before, began = await self.read(), time.monotonic()
        numbers = iter(range(count))

        async def send() -> None:
            for number in numbers:
                answer = await ask(number)
                assert answer.status == 200, answer

        await asyncio.gather(*[send() for _ in range(AT_ONCE)])
        print(f"{count:,} requests took {time.monotonic() - began:.0f} s")
        # Usage is written once in two seconds.
        await asyncio.sleep(2.5)
        work = (await self.read()).less(before, 1)
        return work.less(idle, time.monotonic() - began).per(count)

    async def of_batch(self, user: User, count: int, idle: Work) -> Work:
        """Return the work of a request in a batch of many."""
        before, began = await self.read(), time.monotonic()
        created = await user.message_batch(*[TEXT] * count)
        assert created.status == 200, created

        async def has_ended() -> bool:
            batch = await user.find_message_batch(created.body["id"])
            return batch.body["processing_status"] == "ended"

        await until(has_ended, within_s=600.0, every_s=1.0)
        print(f"a batch of {count:,} took {time.monotonic() - began:.0f} s")
        # Usage is written once in two seconds.
        await asyncio.sleep(2.5)
        work = (await self.read()).less(before, 1)
        return work.less(idle, time.monotonic() - began).per(count)


def _ended_cpu_seconds(pid: int) -> float:
    """Return the CPU time of those children of a process that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


async def kinds(user: User, limited: User) -> dict[str, Ask]:
    """Return the kinds of requests, by name."""
    session = await user.open_document(await user.create_document())
    stored = await user.response(TEXT)
    response_ids = [stored.body["id"]]
    file_ids = [(await user.upload(CONTENT)).body["id"]]

    async def upload(number: int) -> Answer:
        answer = await user.upload(CONTENT)
        file_ids.append(answer.body["id"])
        return answer

    async def follow(number: int) -> Answer:
        # Conversations of ten responses.
        previous = response_ids[-1] if number % 10 else response_ids[0]
        answer = await user.response(TEXT, previous_response_id=previous)
        response_ids.append(answer.body["id"])
        return answer

    async def download(number: int) -> Answer:
        await user.content(file_ids[-1])
        return Answer(200, {}, None)

    return {
        "chat": lambda number: user.chat(TEXT),
        "chat, caller with limits": lambda number: limited.chat(TEXT),
        "chat with memory": lambda number: user.chat(TEXT, memory_id=f"talk-{number // 20}"),
        "  with facts": lambda number: user.chat(
            TEXT, memory_id=f"friend-{number // 20}", memory_config={"personal_memory": True}
        ),
        "response, stored": lambda number: user.response(TEXT),
        "  after another": follow,
        "upload of 10 KB": upload,
        "download": download,
        "edit of a document": lambda number: user.insert(session, TEXT),
    }


async def measure(
    folder: Path, server: PostgreSQL, count: int, *, only_batch: bool
) -> dict[str, Work]:
    """Return the work of each kind of request; of "idle", that of a second."""
    admin = {"key_sha256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest()}
    async with counting_proxy(server) as (proxy, url):
        storage = {"data_dir": str(folder), "database_url": url}
        with (
            counting_statements() as counts,
            # The first sweeps of a process are no part of what it does every second.
            patch("services.common.storage.sweeping._AFTER_START_S", 600),
        ):
            async with running_gateway(folder, storage=storage, admin=admin) as gateway:
                connection = await asyncpg.connect(server.url)
                postmaster = await connection.fetchval(
                    "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int"
                )
                folder_of_server = await connection.fetchval("SHOW data_directory")
                server_log = ServerLog(Path(folder_of_server) / "log")
                meter = Meter(connection, postmaster, counts, proxy, server_log)
                administrator = Administrator(gateway.http, gateway.url)
                limited = await administrator.user(
                    "limited",
                    requests_per_minute=1_000_000,
                    tokens_per_minute=1_000_000_000,
                    concurrent_requests=1_000,
                )
                user = User(gateway.http, gateway.url, gateway.key)
                asks = await kinds(user, limited)
                idle = await meter.idle()
                work_by_name = {"idle, a second": idle}
                for name, ask in () if only_batch else asks.items():
                    work_by_name[name] = await meter.of(ask, count, idle)
                if only_batch:
                    with server_log.printing():
                        work = await meter.of_many(asks["chat"], 10 * count, idle)
                    work_by_name["chat, eight at a time"] = work
                # Once for each connection, statements are prepared.
                await meter.of_batch(user, count, idle)
                with server_log.printing():
                    work = await meter.of_batch(user, 10 * count, idle)
                work_by_name["chat in a batch"] = work
                await connection.close()
                return work_by_name


async def main() -> None:
    """Measure, and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    with tempfile.TemporaryDirectory() as folder, postgresql_server() as server:
        only_batch = "batch" in sys.argv[2:]
        for statement in LOG_ALL:
            await server.execute(statement)
        work_by_name = await measure(Path(folder), server, count, only_batch=only_batch)
    heads = (
        "round trips",
        "transactions",
        "reads",
        "writes",
        "server ms",
        "CPU ms",
        "WAL bytes",
        "bytes kept",
    )
    print(f"{'':28}" + "".join(f"{head:>14}" for head in heads))
    for name, work in work_by_name.items():
        print(f"{name:28}" + "".join(f"{value:14,.3f}" for value in work.values))


if __name__ == "__main__":
    asyncio.run(main())
