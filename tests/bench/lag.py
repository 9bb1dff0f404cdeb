"""How long small requests wait while large work goes on in the same worker.

Small ones come at fixed times, so that a worker that stands still makes all of them wait that
came meanwhile. The large work has a provider of its own, and so its answers hold up nobody.
"""

import asyncio
import base64
import itertools
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench import large, load, wire
from tests.e2e import gateway as real
from tests.e2e.processes import PYTHON, Running
from tests.services.media.conversion import papers

# What goes on beside the small requests, by the name of its figure.
NEIGHBOURS = (
    "20 MB in 100,000 messages",
    "20 MB in 10 messages",
    "edits of 10,000 blocks",
    "memory jobs",
    "a PDF of 300 pages",
    "all of them",
)
BLOCKS = 10_000
# So often one chat and one /healthz are sent.
_EVERY_S = 0.01
_LONG_TEXTS = 10
_AN_INSERT, _SMALL_EDITS = 500, 20
_ROWS, _COLUMNS = 200, 50
_TURNS, _WORDS = 200, 100
_LONG_TURNS, _MANY_WORDS = 3, 3_000
_PAGES = 300
_TIMEOUT_S = 60.0
_SETTINGS = """
[providers.heavy]
kind = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "upstream-key"

[[models]]
name = "reads-text"
provider = "heavy"
upstream = "bench"
inputs = ["text"]

[articles.quota]
personal_free = 1000000000
personal_pro = 1000000000
team_pro = 1000000000
enterprise = 1000000000
"""

Samples = MutableMapping[str, list[float]]
Work = Callable[[], Awaitable[None]]


async def measure(
    samples: Samples, gateway: Sequence[int], others: Sequence[int], *, seconds: float, rounds: int
) -> None:
    """Add the 99th percentiles of small requests, in milliseconds: alone, and beside each work.

    Args:
        samples: what is added to.
        gateway: processors that the gateway may use.
        others: those of the providers.
        seconds: how long each is measured; large work that has begun ends first.
        rounds: how often.
    """
    upstream = [PYTHON, "-m", "tests.bench.upstream"]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Running(upstream, cpus=others) as small,
        Running(upstream, cpus=others) as heavy,
    ):
        small_port, heavy_port = (int(one.wait_for(r"on port (\d+)")[1]) for one in (small, heavy))
        settings = _SETTINGS.format(port=heavy_port)
        with real.gateway(Path(folder), small_port, cpus=gateway, settings=settings) as running:
            async with aiohttp.ClientSession(
                running.address,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(_TIMEOUT_S),
            ) as session:
                client = _Client(session, running.key)
                works = await _works(client)
                await _beside(client, works, seconds / 4)  # warms up
                for _ in range(rounds):
                    samples["lag alone"].append(await _beside(client, (), seconds))
                    for name, work in zip(NEIGHBOURS, (*zip(works), works), strict=True):
                        samples[f"lag {name}"].append(await _beside(client, work, seconds))


class _Client:
    """Calls the gateway."""

    def __init__(self, session: aiohttp.ClientSession, key: str) -> None:
        self._session = session
        self._key = {"authorization": f"Bearer {key}"}
        self._editors_key = {"x-api-key": key}

    async def get(self, path: str) -> None:
        async with self._session.get(path) as response:
            await _checked(response)

    async def chat(self, body: bytes) -> None:
        await self._post(wire.PATHS["openai"], body, self._key)

    async def edit(self, endpoint: str, **fields: Any) -> Any:
        answer = json.loads(
            await self._post(f"/article/v1/{endpoint}", wire.encoded(fields), self._editors_key)
        )
        if answer["code"] != 1:
            raise load.WrongAnswerError(str(answer)[:2000])
        return answer["data"]

    async def delete(self, path: str) -> None:
        async with self._session.delete(path, headers=self._key) as response:
            await _checked(response)

    async def _post(self, path: str, body: bytes, key: Mapping[str, str]) -> bytes:
        headers = {"content-type": "application/json", **key}
        async with self._session.post(path, data=body, headers=headers) as response:
            return await _checked(response)


async def _checked(response: aiohttp.ClientResponse) -> bytes:
    body = await response.read()
    if response.status != 200:
        raise load.WrongAnswerError(body[:2000].decode(errors="replace"))
    return body


async def _beside(client: _Client, works: Sequence[Work], seconds: float) -> float:
    """Return the 99th percentile of small requests' milliseconds while `works` are repeated."""
    ended = asyncio.Event()

    async def repeat(work: Work) -> None:
        await work()
        while not ended.is_set():
            await work()

    async with asyncio.TaskGroup() as group:
        heavy = [group.create_task(repeat(work)) for work in works]
        waits = await _small(client, seconds, heavy)
        ended.set()
    return load.percentile(waits, 0.99) * 1000


async def _small(
    client: _Client, seconds: float, heavy: Sequence[asyncio.Task[None]]
) -> Sequence[float]:
    """Send small requests for some seconds; return those that each of them waited."""
    chat = wire.body("openai/bench")
    waits: list[float] = []

    async def timed(request: Awaitable[None]) -> None:
        began = time.perf_counter()
        await request
        waits.append(time.perf_counter() - began)

    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.TaskGroup() as group:
        for number in itertools.count():
            at = began + number * _EVERY_S
            if at > began + seconds or any(task.done() for task in heavy):
                break
            await asyncio.sleep(at - clock())
            group.create_task(timed(client.chat(chat)))
            group.create_task(timed(client.get("/healthz")))
    return waits


async def _works(client: _Client) -> Sequence[Work]:
    """Return what goes on beside, but for all of it at once, in the order of `NEIGHBOURS`."""
    text = "".join(f'{line:8}\t    return "a line of a file"  # {line}\n' for line in range(40_000))
    long = text[: large.BODY_BYTES // _LONG_TEXTS]
    messages = [{"role": "user", "content": f"{number}: {long}"} for number in range(_LONG_TEXTS)]
    many = wire.body("heavy/bench", fields={"messages": large.conversation(large.MESSAGES)})
    few = wire.body("heavy/bench", fields={"messages": messages})
    return (
        lambda: client.chat(many),
        lambda: client.chat(few),
        await _editing(client),
        _remembering(client),
        _reading(client),
    )


async def _editing(client: _Client) -> Work:
    """Return what edits a long document, in several ways, and reads it."""
    made = await client.edit("doc/create", name="long")
    opened = await client.edit("session/create", docId=made["article"]["outer_id"])
    session = {"sessionId": opened["sessionId"]}
    ids: list[str] = []
    chance = random.Random(1)
    leaves = [{"type": "default", "text": "A block of a line or so of plain text. " * 2}]
    paragraph = {"type": "paragraph", "children": leaves}
    cell = {"type": "table-cell", "children": [{"type": "default", "text": "a cell"}]}
    row = {"type": "table-row", "children": [cell] * _COLUMNS}
    table = {"type": "table", "children": [row] * _ROWS}

    async def insert(blocks: Sequence[Any]) -> None:
        path = [chance.randrange(len(ids) + 1)]
        done = await client.edit("block/insert", **session, path=path, blocks=blocks)
        ids.extend(done["ids"])

    for _ in range(0, BLOCKS, _AN_INSERT):
        await insert([paragraph] * _AN_INSERT)

    async def edit() -> None:
        for _ in range(_SMALL_EDITS):
            block = chance.choice(ids)
            await client.edit("block/text/append", **session, blockId=block, text=" More.")
            await client.edit("block/style", **session, blockId=block, indent=True)
            await client.edit("block/delete", **session, blockId=ids.pop())
            await insert([paragraph])
        await client.edit("style/article", **session, style={"paragraph": {"indent": True}})
        await client.edit("doc/read", **session)
        await client.edit("block/delete", **session, blockId=ids.pop())
        await insert([table])
        await client.edit("block/delete", **session, blockId=ids.pop())
        await insert([paragraph])

    return edit


def _remembering(client: _Client) -> Work:
    """Return what begins a memory with a long conversation, goes on with long turns, forgets."""
    numbers = itertools.count()
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghilmnoprstu", k=3 + n % 7)) for n in range(5_000)]

    def text(count: int) -> str:
        return "I live in Lisbon. " + " ".join(chance.choices(words, k=count)) + "."

    roles = ("user", "assistant")
    config = {"history_window": 5, "summary_window": 5, "personal_memory": True}
    begun = [{"role": roles[n % 2], "content": text(_WORDS)} for n in range(2 * _TURNS + 1)]
    turns = [[{"role": "user", "content": text(_MANY_WORDS)}] for _ in range(_LONG_TURNS)]

    async def remember() -> None:
        memory_id = f"lag-{next(numbers)}"
        fields = {"memory_id": memory_id, "memory_config": config}
        for messages in (begun, *turns):
            await client.chat(wire.body("heavy/bench", fields={**fields, "messages": messages}))
        await client.delete(f"/beta/v1/memories/{memory_id}")

    return remember


def _reading(client: _Client) -> Work:
    """Return what sends a long PDF, another each time, to a model that reads text alone."""
    numbers = itertools.count()
    words = f"#lorem({_WORDS})"
    pdf = papers.pdf("#pagebreak()\n".join([words] * _PAGES))

    async def read() -> None:
        # So that what was made of it before is of no use.
        content = base64.b64encode(pdf + b"\n%% %d\n" % next(numbers)).decode()
        data = f"data:application/pdf;base64,{content}"
        part = {"type": "file", "file": {"filename": "long.pdf", "file_data": data}}
        fields = {
            "messages": [{"role": "user", "content": [part]}],
            "multimodal": {"pdf": {"max_pages": _PAGES}},
        }
        await client.chat(wire.body("reads-text", fields=fields))

    return read
