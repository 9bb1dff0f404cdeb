"""Batches at the batch services of providers, over HTTP with the official clients."""

import json
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

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app
from tests.upstream.batch_services import BatchServices
from tests.upstream.log import RequestLog
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEY = make_admin_key(bytes(32))
# A dollar for a million tokens of input, two for output.
PRICE = {"input": 1, "output": 2}
CHATS = "/v1/chat/completions"
ENDED = ("completed", "failed", "cancelled", "expired")


@dataclass(frozen=True)
class Provided:
    """A gateway whose providers have batch services.

    Attributes:
        gateway: the gateway.
        services: the batch services.
        log: the requests that the providers have received.
        client: OpenAI's client of a user.
        messages: Anthropic's client of the same user.
    """

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
            input_file_id=file.id, endpoint=CHATS, completion_window="24h", **fields
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

    async def usage(self, group_by: str) -> dict[str, Any]:
        """Return the summed usage by a field."""

        async def get() -> dict[str, Any]:
            url = f"{self.gateway.url}/admin/v1/usage?group_by={group_by}"
            headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
            async with self.gateway.http.get(url, headers=headers) as answer:
                rows = (await answer.json())["data"]
                return {row[group_by]: row for row in rows}

        return await get()


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
        admin={"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
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
        },
    ) as gateway:
        url, key = gateway.url, gateway.key
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
            anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as messages,
        ):
            yield Provided(gateway, services, log, client, messages)


@contextmanager
def playing(at: Provided, **changes: Any) -> Iterator[BatchServices]:
    """Let the batch services do something else for a while."""
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
        chat("second"),
        chat("own", "sandbox/echo"),
        chat("remembered", memory_id="m"),
        chat("nobody", "nobody/knows"),
        chat("tools", tools=[{"type": "function", "function": {"name": "get", "parameters": {}}}]),
    ]
    with playing(at) as services:
        batch = await at.ended((await at.batch(lines)).id)
        assert batch.status == "completed" and batch.request_counts is not None
        assert (batch.request_counts.completed, batch.request_counts.failed) == (6, 1)
        results = await at.results(batch)
        assert list(results) == [
            line["custom_id"] for line in lines if line["custom_id"] != "nobody"
        ] + ["nobody"]
        for name in ("chat", "claude", "second", "own", "remembered"):
            assert f"this is {name}" in text_of(results[name])
        assert results["nobody"]["response"]["status_code"] == 404
        sent = services.requests()
        assert sorted(
            body["messages"][-1]["content"]
            if isinstance(body["messages"][-1]["content"], str)
            else "blocks"
            for body in sent
        )
        assert len(services.batches) == 2 and len(sent) == 4
        # Only what needs the gateway itself was called by it.
        assert len([path for path in at.single_calls() if path.endswith("completions")]) == 1
        # Nothing stays at the providers.
        await until(lambda: not services.files and len(services.deleted) == 3)


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
        assert sorted(len(batch.requests) for batch in services.batches.values()) == [1, 59]
        assert not [
            path for path in at.single_calls() if path.endswith(("messages", "completions"))
        ]
