"""Batches over HTTP with OpenAI's client: from a file of requests to the file of results."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types import Batch

from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = "sandbox/echo"


@dataclass(frozen=True)
class BatchGateway:
    """A gateway, and OpenAI's client of it."""

    gateway: Gateway
    ada: openai.AsyncOpenAI

    async def batch(self, lines: Sequence[Any], **fields: Any) -> Batch:
        """Create a batch of lines of an input file."""
        text = b"\n".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
        )
        file = await self.ada.files.create(file=("in.jsonl", text), purpose="batch")
        endpoint = fields.pop("endpoint", "/v1/chat/completions")
        return await self.ada.batches.create(
            input_file_id=file.id, endpoint=endpoint, completion_window="24h", **fields
        )

    async def ended(self, batch_id: str) -> Batch:
        """Return a batch once it has ended."""
        batch = await self.ada.batches.retrieve(batch_id)

        async def has_ended() -> bool:
            nonlocal batch
            batch = await self.ada.batches.retrieve(batch_id)
            return batch.status in ("completed", "failed", "cancelled", "expired")

        await until(has_ended)
        return batch

    async def lines(self, file_id: str | None) -> list[dict[str, Any]]:
        """Return the lines of a file of results."""
        if file_id is None:
            return []
        content = await self.ada.files.content(file_id)
        return [json.loads(line) for line in content.text.splitlines()]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchGateway]:
    async with (
        running_gateway(tmp_path_factory.mktemp("gateway")) as gateway,
        openai.AsyncOpenAI(api_key=gateway.key, base_url=f"{gateway.url}/v1") as ada,
    ):
        yield BatchGateway(gateway, ada)


def chat(custom_id: str, text: str = "Hi", **fields: Any) -> dict[str, Any]:
    """Return a line with a chat completion."""
    body = {"model": ECHO, "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


async def test_a_file_of_chats_becomes_a_file_of_answers(at: BatchGateway) -> None:
    lines = [chat(f"r{number}", f"text {number}") for number in range(120)]
    lines[7]["body"]["model"] = "nobody/knows"
    created = await at.batch(lines, metadata={"project": "alpha"})
    assert created.metadata == {"project": "alpha"}
    batch = await at.ended(created.id)
    assert batch.status == "completed", batch
    assert batch.request_counts is not None
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (120, 119, 1)
    results = await at.lines(batch.output_file_id)
    texts = {
        line["custom_id"]: line["response"]["body"]["choices"][0]["message"]["content"]
        for line in results
    }
    assert list(texts) == [f"r{number}" for number in range(120) if number != 7]
    assert all(f"text {name[1:]}" in text for name, text in texts.items())
    [error] = await at.lines(batch.error_file_id)
    assert error["custom_id"] == "r7" and error["response"]["status_code"] == 404
    assert error["response"]["body"]["error"]["code"] == "model_not_found"


async def test_invalid_lines_are_named_and_nothing_is_run(at: BatchGateway) -> None:
    good = chat("a")
    rows: list[tuple[Any, str, str | None]] = [
        (b'{"custom_id": "x", ', "invalid_json_line", None),
        (b'["x"]', "invalid_json_line", None),
        (b'{"custom_id": "\xff"}', "invalid_json_line", None),
        (chat("a"), "duplicate_custom_id", "custom_id"),
        ({**good, "custom_id": ""}, "invalid_custom_id", "custom_id"),
        ({**good, "custom_id": 3}, "invalid_type", "custom_id"),
        ({**good, "method": "GET"}, "invalid_method", "method"),
        ({**good, "url": "/v1/embeddings"}, "mismatched_endpoint", "url"),
        ({**good, "body": "text"}, "invalid_type", "body"),
        (
            {"custom_id": "b", "method": "POST", "url": good["url"]},
            "missing_required_parameter",
            "body",
        ),
        (chat("s", stream=True), "invalid_request", "body.stream"),
    ]
    batch = await at.ended((await at.batch([good, *(line for line, _, _ in rows)])).id)
    assert batch.status == "failed" and batch.failed_at and batch.output_file_id is None
    assert batch.errors is not None and batch.errors.data is not None
    shown = [(error.line, error.code, error.param) for error in batch.errors.data]
    assert shown == [(line, code, param) for line, (_, code, param) in enumerate(rows, 2)]
    empty = await at.ended((await at.batch([b" \n\n"])).id)
    assert empty.errors is not None and empty.errors.data is not None
    assert [error.code for error in empty.errors.data] == ["empty_file"]
