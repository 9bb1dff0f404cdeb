"""Batches over HTTP with the official clients: files of requests, messages, cancellation."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
import pytest_asyncio
from openai.types import Batch

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.facade.response_clients import ResponseGateway, response_gateway
from tests.faults import actions
from tests.faults.upstream import Exchange
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = "sandbox/echo"
ADMIN_KEY = make_admin_key(bytes(32))
PARALLEL = 8
OPEN = 3


@dataclass(frozen=True)
class BatchGateway(ResponseGateway):
    """A gateway with batches of its users."""

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

    async def batch_ended(self, batch_id: str) -> Batch:
        """Return a batch once it has ended."""

        async def retrieve() -> Batch | None:
            batch = await self.ada.batches.retrieve(batch_id)
            is_over = batch.status in ("completed", "failed", "cancelled", "expired")
            return batch if is_over else None

        batch = await until(retrieve, every_s=0.02)
        assert batch is not None
        return batch

    async def lines(self, file_id: str | None) -> list[dict[str, Any]]:
        """Return the lines of a file of results."""
        assert file_id is not None
        content = await self.ada.files.content(file_id)
        return [json.loads(line) for line in content.text.splitlines()]

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to an administrator's request."""
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        url = f"{self.gateway.url}/admin/v1/{path}"
        async with self.gateway.http.request(method, url, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    def messages(self) -> anthropic.AsyncAnthropic:
        """Return Anthropic's client of Ada."""
        url = f"{self.gateway.url}"
        return anthropic.AsyncAnthropic(base_url=url, api_key=self.gateway.key, max_retries=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchGateway]:
    batches = {"max_open_per_user": OPEN, "max_parallel_requests_per_user": PARALLEL}
    folder = tmp_path_factory.mktemp("gateway")
    admin = {"key_sha256": hash_admin_key(ADMIN_KEY).hex()}
    async with response_gateway(folder, batches=batches, admin=admin) as one:
        yield BatchGateway(one.gateway, one.upstream, one.ada, one.bob)


def chat(custom_id: str, text: str = "Hi", **fields: Any) -> dict[str, Any]:
    """Return a line with a chat completion."""
    body = {"model": ECHO, "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


async def test_a_file_of_chats_becomes_a_file_of_answers(at: BatchGateway) -> None:
    lines = [chat(f"r{number}", f"text {number}") for number in range(120)]
    lines[7]["body"]["model"] = "nobody/knows"
    lines[8]["body"].update(unknown="ü")
    created = await at.batch(lines, metadata={"project": "alpha"})
    assert created.metadata == {"project": "alpha"}
    batch = await at.batch_ended(created.id)
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
    bodies = {line["custom_id"]: line["response"]["body"] for line in results}
    changed = {name: body["gateway"] for name, body in bodies.items() if "gateway" in body}
    assert changed == {"r8": {"dropped": ["unknown"]}}
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
    batch = await at.batch_ended((await at.batch([good, *(line for line, _, _ in rows)])).id)
    assert batch.status == "failed" and batch.failed_at and batch.output_file_id is None
    assert batch.errors is not None and batch.errors.data is not None
    shown = [(error.line, error.code, error.param) for error in batch.errors.data]
    assert shown == [(line, code, param) for line, (_, code, param) in enumerate(rows, 2)]
    empty = await at.batch_ended((await at.batch([b" \n\n"])).id)
    assert empty.errors is not None and empty.errors.data is not None
    assert [error.code for error in empty.errors.data] == ["empty_file"]


async def test_a_cancelled_batch_keeps_what_had_begun(at: BatchGateway) -> None:
    opened = asyncio.Event()

    async def waits(exchange: Exchange) -> None:
        await opened.wait()
        await actions.answers()(exchange)

    at.upstream.plays("gated", waits)
    lines = [chat(f"r{number}", model="openai/gated") for number in range(60)]
    created = await at.batch(lines)
    await until(lambda: len(at.upstream.asked("gated")) == PARALLEL)
    running = await at.ada.batches.retrieve(created.id)
    assert running.status == "in_progress"
    cancelling = await at.ada.batches.cancel(created.id)
    assert cancelling.status == "cancelling" and cancelling.cancelling_at
    opened.set()
    batch = await at.batch_ended(created.id)
    assert batch.status == "cancelled" and batch.cancelled_at
    assert len(at.upstream.asked("gated")) == PARALLEL
    assert [line["custom_id"] for line in await at.lines(batch.output_file_id)] == [
        f"r{number}" for number in range(PARALLEL)
    ]
    errors = await at.lines(batch.error_file_id)
    assert [line["custom_id"] for line in errors] == [f"r{n}" for n in range(PARALLEL, 60)]
    assert {(line["response"], line["error"]["code"]) for line in errors} == {
        (None, "batch_cancelled")
    }
    assert (await at.ada.batches.cancel(created.id)).status == "cancelled"


async def test_messages_are_streamed_as_results(at: BatchGateway) -> None:
    async with at.messages() as client:
        batches = client.messages.batches
        params: Any = {"model": ECHO, "max_tokens": 50}
        requests: Any = [
            {
                "custom_id": f"m{number}",
                "params": {**params, "messages": [{"role": "user", "content": f"say {number}"}]},
            }
            for number in range(60)
        ]
        requests[3]["params"] = {**params, "model": "nobody/knows", "messages": []}
        requests[4]["params"]["unknown"] = 4
        created = await batches.create(requests=requests)
        assert created.processing_status == "in_progress"

        async def ended() -> bool:
            return (await batches.retrieve(created.id)).processing_status == "ended"

        await until(ended, every_s=0.02)
        counts = (await batches.retrieve(created.id)).request_counts
        assert (counts.processing, counts.succeeded, counts.errored) == (0, 59, 1)
        results = [result async for result in await batches.results(created.id)]
        assert [result.custom_id for result in results] == [f"m{number}" for number in range(60)]
        for number, result in enumerate(results):
            if number == 3:
                assert result.result.type == "errored"
                assert result.result.error.error.type in (
                    "invalid_request_error",
                    "not_found_error",
                )
            else:
                assert result.result.type == "succeeded"
                message = result.result.message
                assert f"say {number}" in message.content[0].text  # type: ignore[union-attr]  # text
                changes = {"gateway": {"dropped": ["unknown"]}} if number == 4 else {}
                assert (message.model_extra or {}) == changes
        assert [batch.id async for batch in batches.list(limit=1)] == [created.id]
        assert (await batches.delete(created.id)).type == "message_batch_deleted"
        with pytest.raises(anthropic.NotFoundError):
            await batches.retrieve(created.id)


async def test_batches_of_others_do_not_exist(at: BatchGateway) -> None:
    created = await at.batch([chat("a")])
    await at.batch_ended(created.id)
    for call in (at.bob.batches.retrieve, at.bob.batches.cancel):
        with pytest.raises(openai.NotFoundError, match="No batch found"):
            await call(created.id)
    assert [batch async for batch in at.bob.batches.list()] == []
    with pytest.raises(openai.BadRequestError, match="after"):
        await at.bob.batches.list(after=created.id)
    with pytest.raises(openai.NotFoundError) as error:
        await at.bob.batches.create(
            input_file_id=created.input_file_id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
    assert error.value.param == "input_file_id"
    listed = [batch.id async for batch in at.ada.batches.list(limit=2)]
    assert listed[0] == created.id and listed == sorted(listed, reverse=True)


async def test_what_is_refused_names_the_field(at: BatchGateway) -> None:
    file = await at.ada.files.create(file=("a.txt", b"x"), purpose="assistants")
    body = {"input_file_id": file.id, "endpoint": "/v1/responses", "completion_window": "24h"}
    message = {"custom_id": "a", "params": {"model": ECHO, "max_tokens": 1, "messages": []}}
    streamed = {**message, "params": {**message["params"], "stream": True}}
    rows: list[tuple[str, Any, str]] = [
        ("batches", body, "input_file_id: must be a file"),
        ("batches", {**body, "input_file_id": "file-1"}, "input_file_id: no such file"),
        ("batches", {**body, "endpoint": "/v1/files"}, "endpoint"),
        ("batches", {**body, "completion_window": "1h"}, "completion_window"),
        ("batches", {**body, "metadata": {"a": 3}}, "metadata"),
        (
            "batches",
            {**body, "output_expires_after": {"anchor": "created_at", "seconds": 1}},
            "seconds",
        ),
        ("messages/batches", {"requests": []}, "requests"),
        ("messages/batches", {"requests": [message, message]}, "requests[1].custom_id"),
        ("messages/batches", {"requests": [{**message, "params": 3}]}, "requests[0].params"),
        ("messages/batches", {"requests": [streamed]}, "requests[0].params.stream"),
        ("messages/batches", {"requests": [{"custom_id": 4}]}, "requests[0].custom_id: must be a"),
        ("messages/batches", {"requests": [{"custom_id": "a"}]}, "requests[0].params: is required"),
        ("messages/batches", {"requests": {}}, "requests: must be an array"),
        ("messages/batches", {}, "requests: is required"),
        ("messages/batches", [], "the body: must be an object"),
    ]

    async def refused(row: tuple[str, Any, str]) -> None:
        path, sent, field = row
        headers = at.gateway.api_key() if path.startswith("messages") else at.gateway.bearer()
        url = f"{at.gateway.url}/v1/{path}"
        async with at.gateway.http.post(url, json=sent, headers=headers) as answer:
            text = await answer.text()
            assert answer.status in (400, 404) and field in json.loads(text)["error"]["message"], (
                text
            )

    for row in rows:
        await refused(row)
    forged = f"gwdelegated-run.key_x.9999999999.{'0' * 64}"
    headers = {"Authorization": f"Bearer {forged}"}
    async with at.gateway.http.get(f"{at.gateway.url}/v1/batches", headers=headers) as answer:
        assert answer.status == 401


async def test_a_user_has_some_open_batches_at_most(at: BatchGateway) -> None:
    opened = asyncio.Event()

    async def waits(exchange: Exchange) -> None:
        await opened.wait()
        await actions.answers()(exchange)

    at.upstream.plays("held", waits)
    created = [await at.batch([chat("a", model="openai/held")]) for _ in range(OPEN)]
    with pytest.raises(openai.RateLimitError, match="maximum"):
        await at.batch([chat("b")])
    opened.set()
    for batch in created:
        assert (await at.batch_ended(batch.id)).status == "completed"


async def test_a_revoked_key_stops_its_batch_and_results_stay(at: BatchGateway) -> None:
    opened = asyncio.Event()

    async def waits(exchange: Exchange) -> None:
        await opened.wait()
        await actions.answers()(exchange)

    at.upstream.plays("slow", waits)
    first, second = [await at.admin("POST", "keys", {"user": "carol"}) for _ in range(2)]
    base = f"{at.gateway.url}/v1"
    async with (
        openai.AsyncOpenAI(api_key=first["key"], base_url=base, max_retries=0) as revoked,
        openai.AsyncOpenAI(api_key=second["key"], base_url=base) as carol,
    ):
        mine = BatchGateway(at.gateway, at.upstream, revoked, at.bob)
        lines = [chat(f"r{number}", model="openai/slow") for number in range(2 * PARALLEL)]
        created = await mine.batch(lines)
        await until(lambda: len(at.upstream.asked("slow")) == PARALLEL)
        await at.admin("POST", f"keys/{first['id']}/revoke")

        async def is_revoked() -> bool:
            try:
                await revoked.batches.retrieve(created.id)
            except openai.AuthenticationError:
                return True
            return False

        await until(is_revoked, every_s=0.05)
        opened.set()
        mine = BatchGateway(at.gateway, at.upstream, carol, at.bob)
        batch = await mine.batch_ended(created.id)
        assert batch.status == "completed"
        assert len(await mine.lines(batch.output_file_id)) == PARALLEL
        errors = await mine.lines(batch.error_file_id)
        assert [line["response"]["status_code"] for line in errors] == [401] * PARALLEL
        assert len(at.upstream.asked("slow")) == PARALLEL
