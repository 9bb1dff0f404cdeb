"""Batches at the batch services of providers, over HTTP with the official clients."""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import pytest_asyncio
from openai.types import Batch

from services.common.storage.database import SQLITE_FILE
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.batch_services import BatchServices
from tests.upstream.log import RequestLog
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A dollar for a million tokens of input, two for output.
PRICE = {"input": 1, "output": 2}
CHATS = "/v1/chat/completions"
SINGLE = ("completions", ":generateContent")
BATCHED = ("openai/echo", "anthropic/echo", "google/echo")
ENDED = ("completed", "failed", "cancelled", "expired")


@dataclass(frozen=True)
class Provided:
    """A gateway whose providers have batch services.

    Attributes:
        folder: its data folder.
        gateway: the gateway.
        services: the batch services.
        log: the requests that the providers have received.
        client: OpenAI's client of a user.
        messages: Anthropic's client of the same user.
    """

    folder: Path
    gateway: Gateway
    services: BatchServices
    log: RequestLog
    client: openai.AsyncOpenAI
    messages: anthropic.AsyncAnthropic

    async def batch(self, lines: Sequence[Any], **fields: Any) -> Batch:
        """Create a batch of lines of an input file."""
        text = "\n".join(map(json.dumps, lines)).encode()
        file = await self.client.files.create(file=("in.jsonl", text), purpose="batch")
        return await self.client.batches.create(
            input_file_id=file.id, endpoint=lines[0]["url"], completion_window="24h", **fields
        )

    async def ended(self, batch_id: str) -> Batch:
        """Return a batch once it has ended."""

        async def retrieve() -> Batch | None:
            batch = await self.client.batches.retrieve(batch_id)
            return batch if batch.status in ENDED else None

        batch = await until(retrieve, every_s=0.02)
        assert batch is not None
        return batch

    async def lines(self, file_id: str | None) -> list[dict[str, Any]]:
        """Return the lines of a file of results."""
        if file_id is None:
            return []
        return [
            json.loads(line)
            for line in (await self.client.files.content(file_id)).text.splitlines()
        ]

    async def results(self, batch: Batch) -> dict[str, Any]:
        """Return the result of each request by its id, after checking that it has one."""
        lines = await self.lines(batch.output_file_id) + await self.lines(batch.error_file_id)
        by_id = {line["custom_id"]: line for line in lines}
        assert len(by_id) == len(lines)
        return by_id

    def single_calls(self) -> list[str]:
        """Return the paths of calls that were not made by batch services."""
        return [entry.path for entry in self.log.entries if "batch" not in entry.path]

    async def usage(self, batch: Batch) -> list[tuple[str, str, int, int, int]]:
        """Return the usage records of the requests of a batch that were answered.

        Each has the endpoint, the model, input and output tokens, and the cost.
        """
        lines = await self.lines(batch.output_file_id)
        request_ids = [line["response"]["request_id"] for line in lines]
        query = (
            "SELECT endpoint, model, input_tokens, output_tokens, cost_pusd FROM usage_records "
            f"WHERE request_id IN ({', '.join('?' * len(request_ids))}) ORDER BY model, endpoint"
        )

        def records() -> Any:
            with sqlite3.connect(self.folder / SQLITE_FILE) as database:
                found = database.execute(query, request_ids).fetchall()
            return found if len(found) == len(request_ids) else None

        found: list[tuple[str, str, int, int, int]] = await until(records, every_s=0.05)
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Provided]:
    services, log = BatchServices(), RequestLog()
    app = create_app(log, personalities=(), batch_services=services)
    folder = tmp_path_factory.mktemp("gateway")
    async with serving(app) as upstream, provided(folder, upstream, services, log) as one:
        yield one


@asynccontextmanager
async def provided(
    folder: Path, upstream: str, services: BatchServices, log: RequestLog
) -> AsyncIterator[Provided]:
    """Run a gateway in front of an upstream."""
    async with running_gateway(
        folder,
        upstream,
        batches={"provider_poll_every_s": 0.02},
        providers={
            "openai": {
                "kind": "openai",
                "base_url": f"{upstream}/v1",
                "api_key": "k",
                "batches": True,
                "price": PRICE,
            },
            "anthropic": {
                "kind": "anthropic",
                "base_url": upstream,
                "api_key": "k",
                "batches": True,
                "price": PRICE,
            },
            "google": {
                "kind": "gemini",
                "base_url": f"{upstream}/v1beta",
                "api_key": "k",
                "batches": True,
                "price": PRICE,
            },
        },
    ) as gateway:
        url, key = gateway.url, gateway.key
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
            anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as messages,
        ):
            yield Provided(folder, gateway, services, log, client, messages)


@contextmanager
def playing(at: Provided, **changes: Any) -> Iterator[BatchServices]:
    """Replace what the batch services do for a while."""
    services = at.services
    for name in ("batches", "files"):
        getattr(services, name).clear()
    services.deleted.clear()
    at.log.clear()
    before = {name: getattr(services, name) for name in changes}
    for name, value in changes.items():
        setattr(services, name, value)
    try:
        yield services
    finally:
        for name, value in before.items():
            setattr(services, name, value)


def chat(custom_id: str, model: str = "openai/echo", **fields: Any) -> dict[str, Any]:
    """Return a line with a chat completion."""
    content = f"this is {custom_id}"
    body = {"model": model, "messages": [{"role": "user", "content": content}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": CHATS, "body": body}


def text_of(line: Any) -> str:
    """Return the text of the answer in a result."""
    content: str = line["response"]["body"]["choices"][0]["message"]["content"]
    return content


async def test_a_batch_is_split_among_batch_services(at: Provided) -> None:
    lines = [
        chat("chat", max_completion_tokens=40),
        chat("claude", "anthropic/echo"),
        chat("gemini", "google/echo", temperature=0.5),
        chat("second"),
        chat("own", "sandbox/echo"),
        chat("remembered", memory_id="m"),
        chat("nobody", "nobody/knows"),
        chat("tools", tools=[{"type": "function", "function": {"name": "get", "parameters": {}}}]),
    ]
    with playing(at) as services:
        batch = await at.ended((await at.batch(lines)).id)
        assert batch.status == "completed" and batch.request_counts is not None
        assert (batch.request_counts.completed, batch.request_counts.failed) == (7, 1)
        results = await at.results(batch)
        assert list(results) == [
            line["custom_id"] for line in lines if line["custom_id"] != "nobody"
        ] + ["nobody"]
        for name in ("chat", "claude", "gemini", "second", "own", "remembered"):
            assert f"this is {name}" in text_of(results[name])
        assert results["nobody"]["response"]["status_code"] == 404
        sent = services.requests()
        assert len(services.batches) == 3 and len(sent) == 5
        # Only what needs the gateway itself was called by it.
        assert len([path for path in at.single_calls() if path.endswith("completions")]) == 1
        # At half the price: fifty cents for a million tokens of input, a dollar for output.
        for endpoint, model, read, written, cost in await at.usage(batch):
            is_batch = model in BATCHED and "remembered" not in endpoint
            price = 500_000 * (read + 2 * written)
            assert model.startswith("sandbox") or cost in (price, 2 * price), (model, cost)
            assert (endpoint == "chat_batch") == (is_batch and cost == price), endpoint
        # Nothing stays at the providers.
        await until(lambda: not services.files and len(services.deleted) == 4)


async def test_messages_are_read_from_batch_services(at: Provided) -> None:
    params: Any = {"model": "anthropic/echo", "max_tokens": 50}
    requests: Any = [
        {
            "custom_id": f"m {n}",
            "params": {**params, "messages": [{"role": "user", "content": f"say {n}"}]},
        }
        for n in range(60)
    ]
    requests[7]["params"]["model"] = "openai/echo"
    for n in (8, 9):
        requests[n]["params"]["model"] = "google/echo"
    with playing(at) as services:
        batches = at.messages.messages.batches
        created = await batches.create(requests=requests)

        async def ended() -> bool:
            return (await batches.retrieve(created.id)).processing_status == "ended"

        await until(ended, every_s=0.02)
        results = [result async for result in await batches.results(created.id)]
        assert [result.custom_id for result in results] == [f"m {n}" for n in range(60)]
        for n, result in enumerate(results):
            assert result.result.type == "succeeded", result
            block = result.result.message.content[0]
            assert block.type == "text" and f"say {n}" in block.text
        assert sorted(len(batch.requests) for batch in services.batches.values()) == [1, 2, 57]
        assert not [
            path
            for path in at.single_calls()
            if path.endswith(("messages", "completions", ":generateContent"))
        ]


@pytest.mark.parametrize("fault", ["refuses", "expires", "off", "errors"])
async def test_what_a_service_does_not_run_is_run_here(at: Provided, fault: str) -> None:
    lines = [chat(name) for name in ("a", "b", "c")]
    changes: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if fault == "refuses":
        changes["refuses"] = 403
    elif fault == "expires":
        changes["expires"] = frozenset({"r1"})
        lines[0]["body"]["model"] = lines[1]["body"]["model"] = "google/echo"
    elif fault == "off":
        options["extra_body"] = {"native": "off"}
    else:
        lines[1]["body"]["model"] = "openai/unknown"
    with playing(at, **changes) as services:
        batch = await at.ended((await at.batch(lines, **options)).id)
        results = await at.results(batch)
        statuses = [results[name]["response"]["status_code"] for name in ("a", "b", "c")]
        assert statuses == [200, 404 if fault == "errors" else 200, 200]
        assert "this is c" in text_of(results["c"])
        single = len([path for path in at.single_calls() if path.endswith(SINGLE)])
        own = {"refuses": 3, "expires": 1, "off": 3, "errors": 1}[fault]
        batches = {"expires": 2, "errors": 2}.get(fault, 0)
        assert (single, len(services.batches)) == (own, batches)
        endpoints = [endpoint for endpoint, *_ in await at.usage(batch)]
        assert endpoints.count("chat_batch") == {"expires": 2, "errors": 2}.get(fault, 0)


async def test_completions_of_chat_models_are_run_here(at: Provided) -> None:
    body = {"model": "anthropic/echo", "prompt": ["first", "second"], "max_tokens": 20}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": body}
    with playing(at) as services:
        batch = await at.ended((await at.batch([line])).id)
        choices = (await at.results(batch))["a"]["response"]["body"]["choices"]
        assert ["first" in choice["text"] for choice in choices] == [True, False]
        assert ["second" in choice["text"] for choice in choices] == [False, True]
        assert not services.batches


@pytest.mark.parametrize("model", ["openai/echo", "google/echo"])
async def test_a_batch_is_cancelled_at_its_provider(at: Provided, model: str) -> None:
    with playing(at, waits=True) as services:
        created = await at.batch([chat(name, model) for name in ("a", "b", "c")])
        await until(lambda: len(services.batches) == 1)
        assert (await at.client.batches.retrieve(created.id)).status == "in_progress"
        assert (await at.client.batches.cancel(created.id)).status == "cancelling"
        batch = await at.ended(created.id)
        assert batch.status == "cancelled"
        results = await at.results(batch)
        assert "this is a" in text_of(results["a"])
        assert [results[name]["error"]["code"] for name in ("b", "c")] == ["batch_cancelled"] * 2
        assert not [path for path in at.single_calls() if path.endswith(SINGLE)]
