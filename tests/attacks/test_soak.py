"""Ten hostile callers and fifty ordinary ones, for as long as `SOAK_SECONDS` says (1,200).

On either kind of database.
"""

import asyncio
import json
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import Any

import aiohttp
import pytest

from services.accounts.repository import AccountRepository
from services.common.settings import Storage, parse
from services.common.storage.database import open_engine
from tests.attacks.hostile_callers import ATTACKS
from tests.attacks.hostile_upstream import hostile_upstream
from tests.attacks.observer import WORKER, rss_mb
from tests.attacks.prober import p99
from tests.attacks.worst_case import MIB, gateway_bytes
from tests.bench import processes
from tests.databases import postgresql_server
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import PYTHON, ROOT
from tests.e2e.users import User

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
ALONE_S = min(SECONDS / 4, 120.0)
WORKERS, ORDINARY, HOSTILE = 2, 50, 10
# An ordinary caller reads its answer before it asks again.
PAUSE_S = 1.0
# It begins a new conversation after so many turns, so that those beside the attacks are as long as
# those alone: what a memory adds to a question grows, and the sandbox's echo repeats it.
TURNS = 16
SLOWER = 3
# Below it, a percentile of answers of a few milliseconds says how busy the machine is.
NOISE_S = 0.05
SETTINGS = {
    "limits": {
        "max_parallel_conversions": 1,
        "conversion_memory_bytes": 1 << 30,
        "max_answer_bytes": 16 * MIB,
        "max_connections": 1_000,
    }
}
# A hostile caller asks a provider for so many answers at the same time.
ANSWERS = 2 * HOSTILE
_HOSTILE = "tests.attacks.hostile_callers"
_RETRIABLE = {409, 429, 503}
# Of 1,000 answers to ordinary callers, so many may be refusals.
MAX_REFUSED = 5
_HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    with hostile_upstream() as port:
        yield port


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    with postgresql_server() as server:
        yield server.url


@pytest.fixture(scope="module")
def target(
    tmp_path_factory: pytest.TempPathFactory, upstream_port: int, database_url: str
) -> Iterator[Gateway]:
    limits = "".join(f"{name} = {value}\n" for name, value in SETTINGS["limits"].items())
    blind = '[[models]]\nname = "blind"\nprovider = "sandbox"\nupstream = "echo"\n'
    storage = f'[storage]\ndatabase_url = "{database_url}"\n'
    settings = f'\n{storage}\n[limits]\n{limits}\n{blind}inputs = ["text"]\n'
    folder = tmp_path_factory.mktemp("target")
    with gateway(
        folder, upstream_port, workers=WORKERS, settings=settings, is_forked=False
    ) as started:
        yield started


@pytest.fixture(scope="module")
def keys(target: Gateway, database_url: str) -> Mapping[str, Sequence[str]]:
    """Return a key of each caller, by what they are."""

    async def create() -> Mapping[str, Sequence[str]]:
        storage = Storage(data_dir=target.data_dir, database_url=database_url)
        engine = open_engine(storage)
        try:
            accounts = AccountRepository(engine)
            return {
                kind: [await accounts.create_key(f"{kind}{n}", plan=plan) for n in range(count)]
                for kind, plan, count in (
                    ("ordinary", "enterprise", ORDINARY),
                    ("hostile", "personal_free", HOSTILE),
                )
            }
        finally:
            await engine.dispose()

    return asyncio.run(create())


class Ordinary:
    """An ordinary caller, who asks for one thing after the other.

    Attributes:
        took_s: how long each answer took, by what was asked for.
        failures: what was answered otherwise than it should be.
        refused: how often a caller was told to try again, as where a machine stands still.
    """

    def __init__(self, http: aiohttp.ClientSession, at: Gateway, key: str, number: int) -> None:
        self.took_s: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self.refused = 0
        self._http = http
        self._at = at
        self._headers = {"x-api-key": key, "compat-version": "2023-06-01"}
        self._user = User(http, at.address, key)
        self._number = number
        self._kinds: Sequence[Callable[[], Awaitable[int]]] = (
            *(self._chat, self._stream, self._message, self._remembered),
            *(self._response, self._file, self._healthz),
        )

    async def run(self, ending: asyncio.Event) -> None:
        """Ask until `ending` is set."""
        turn = self._number
        while not ending.is_set():
            kind = self._kinds[turn % len(self._kinds)]
            turn += 1
            began = time.monotonic()
            try:
                status = await kind()
            except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
                self.failures.append(f"{kind.__name__}: {error!r:.300}")
            else:
                self.took_s[kind.__name__.strip("_")].append(time.monotonic() - began)
                if status in _RETRIABLE:
                    self.refused += 1
                elif status != 200:
                    self.failures.append(f"{kind.__name__}: {status}")
            await asyncio.sleep(PAUSE_S)  # of a person who reads

    async def _post(self, path: str, **body: Any) -> int:
        async with self._http.post(
            self._at.address + path, json=body, headers=self._headers
        ) as answer:
            await answer.read()
            return answer.status

    async def _chat(self) -> int:
        return await self._post("/beta/v1/chat/completions", model="sandbox/echo", messages=_HELLO)

    async def _stream(self) -> int:
        return await self._post(
            "/beta/v1/chat/completions", model="sandbox/echo", messages=_HELLO, stream=True
        )

    async def _message(self) -> int:
        return await self._post(
            "/beta/v1/messages", model="sandbox/echo", messages=_HELLO, max_tokens=20
        )

    async def _remembered(self) -> int:
        return await self._post(
            "/beta/v1/chat/completions",
            model="sandbox/echo",
            messages=_HELLO,
            memory_id=f"mine {len(self.took_s['remembered']) // TURNS}",
        )

    async def _response(self) -> int:
        return await self._post("/beta/v1/responses", model="sandbox/echo", input="Hello")

    async def _file(self) -> int:
        stored = await self._user.upload(b"of an ordinary caller")
        if stored.status == 200:
            assert await self._user.content(stored.body["id"]) == b"of an ordinary caller"
        return stored.status

    async def _healthz(self) -> int:
        async with self._http.get(f"{self._at.address}/healthz") as answer:
            return answer.status


async def ordinary_callers(
    target: Gateway, keys: Sequence[str], seconds: float
) -> tuple[Mapping[str, Sequence[float]], list[str], int, float]:
    """Run ordinary callers for a time.

    Return the times of their answers by what they asked for, their failures and refusals, and the
    highest RSS of the gateway in MB.
    """
    highest = 0.0
    ending = asyncio.Event()
    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as http:
        callers = [Ordinary(http, target, key, number) for number, key in enumerate(keys)]
        running = [asyncio.create_task(caller.run(ending)) for caller in callers]
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            highest = max(highest, rss_mb(target))
            await asyncio.sleep(0.2)  # between two samples
        ending.set()
        await asyncio.gather(*running)
    took_s: dict[str, list[float]] = defaultdict(list)
    for caller in callers:
        for kind, times_s in caller.took_s.items():
            took_s[kind] += times_s
    failures = [one for caller in callers for one in caller.failures]
    return took_s, failures, sum(caller.refused for caller in callers), highest


def all_of(took_s: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the times of all answers."""
    return list(chain.from_iterable(took_s.values()))


def summary(took_s: Mapping[str, Sequence[float]]) -> Mapping[str, tuple[int, float, float]]:
    """Return the number of answers, their median and their 99th percentile: of all, and by kind."""
    by_kind = {"all": all_of(took_s), **took_s}
    return {
        kind: (len(times_s), round(median(times_s), 3), round(p99(times_s), 3))
        for kind, times_s in by_kind.items()
    }


class HostileCallers:
    """The process of the hostile callers.

    It has the lowest priority: on a machine of their own they would take no processor time from the
    gateway and from the ordinary callers.
    """

    def __init__(self, target: Gateway, keys: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            ["nice", "-n", "19", PYTHON, "-m", _HOSTILE, str(target.port), *keys],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def stop(self) -> Mapping[str, int]:
        """Stop them; return how often each attack ran."""
        output, _ = self._process.communicate()
        counts: Mapping[str, int] = json.loads(output)
        return counts


async def test_hostile_callers_cost_ordinary_ones_little(
    target: Gateway, keys: Mapping[str, Sequence[str]]
) -> None:
    workers = processes.running_module(processes.family(target.process.pid), WORKER)
    assert len(workers) == WORKERS
    alone_s, failures, _, _ = await ordinary_callers(target, keys["ordinary"], ALONE_S)
    assert not failures, failures[:10]

    hostile = await asyncio.to_thread(HostileCallers, target, keys["hostile"])
    try:
        beside_s, failures, refused, highest_mb = await ordinary_callers(
            target, keys["ordinary"], SECONDS
        )
    finally:
        counts = await asyncio.to_thread(hostile.stop)
    after = processes.running_module(processes.family(target.process.pid), WORKER)
    settings = parse(SETTINGS, "the soak")
    bound_mb = gateway_bytes(settings, WORKERS, settings.limits.max_connections, ANSWERS) / MIB
    report = {
        "alone": summary(alone_s),
        "beside": summary(beside_s),
        "rss_mb": highest_mb,
        "bound_mb": bound_mb,
        "failures": [len(failures), failures[:10]],
        "refused": refused,
        "attacks": counts,
        "workers": [list(workers), list(after)],
    }
    print(json.dumps(report, indent=1))
    output = target.process.output
    assert sorted(after) == sorted(workers), (report, output[-4000:])
    assert not failures, report
    assert refused <= MAX_REFUSED * len(all_of(beside_s)) / 1000, report
    assert highest_mb < bound_mb, report
    assert p99(all_of(beside_s)) < SLOWER * max(p99(all_of(alone_s)), NOISE_S), report
    assert "unforeseen failure" not in output, output[output.index("unforeseen failure") :][:4000]
    if SECONDS >= 600:
        assert counts.keys() == {attack.__name__ for attack in ATTACKS}, report
