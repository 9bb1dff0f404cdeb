"""`kill -9` of a worker that generates responses, or of a facade: each ends, none runs twice."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
from openai import AsyncOpenAI

from gateway.memory.v1.responses_pb2 import GetResponseRequest, StoredResponse
from gateway.memory.v1.responses_pb2_grpc import ResponseServiceStub
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway, gateway_apart
from tests.facade.response_clients import Gate
from tests.faults import actions
from tests.faults.upstream import FaultUpstream, fault_upstream
from tests.waiting import until

SOON_S = 60.0
WORKER = "services.worker"
RUNNING = ("queued", "in_progress")
LEASE_S = 300
# One runs, another waits for it.
SETTINGS = f"""\
[limits]
max_background_responses = 1
[memory]
response_lease_s = {LEASE_S}
"""


@asynccontextmanager
async def running(
    folder: Path, *, apart: bool = False
) -> AsyncIterator[tuple[Gateway, FaultUpstream, AsyncOpenAI]]:
    """Run a gateway in front of a provider; yield both, and a client."""
    async with fault_upstream() as upstream:
        port = int(upstream.url.rpartition(":")[2])
        run = gateway_apart if apart else gateway
        process = run(folder, port, settings=SETTINGS)
        # Its providers are asked for their models meanwhile, by this very loop.
        started = await asyncio.to_thread(process.__enter__)
        try:
            base = f"{started.address}/beta/v1"
            async with AsyncOpenAI(base_url=base, api_key=started.key, max_retries=0) as client:
                yield started, upstream, client
        finally:
            await asyncio.to_thread(process.__exit__, None, None, None)


async def test_responses_of_a_killed_worker_fail_and_run_once(tmp_path: Path) -> None:
    async with running(tmp_path) as (started, upstream, client):
        upstream.plays("silent", actions.says_nothing())
        upstream.plays("quick", actions.answers())
        asked: Any = {"input": "Hi", "background": True}
        done = await client.responses.create(model="openai/quick", **asked)
        await until(lambda: _has_ended(client, done.id), within_s=SOON_S)
        lost = [
            (await client.responses.create(model="openai/silent", **asked)).id for _ in range(2)
        ]
        await until(lambda: upstream.asked("silent"), within_s=SOON_S)

        family = processes.family(started.process.pid)
        os.kill(processes.of_modules(family, [WORKER])[WORKER], signal.SIGKILL)

        for response_id in lost:
            await until(
                lambda name=response_id: _has_ended(client, name), within_s=SOON_S, every_s=0.05
            )
            failed = await client.responses.retrieve(response_id)
            assert failed.status == "failed"
            assert failed.error is not None
            assert "the gateway stopped" in failed.error.message
        kept = await client.responses.retrieve(done.id)
        assert (kept.status, kept.output_text) == ("completed", actions.TEXT)
        assert len(upstream.asked("silent")) == 1

        again = await client.responses.create(
            model="openai/quick", input="And?", previous_response_id=done.id
        )
        assert again.output_text == actions.TEXT
        assert len(upstream.asked("silent")) == 1


async def test_items_that_were_acknowledged_survive_a_kill(tmp_path: Path) -> None:
    async with running(tmp_path) as (started, upstream, client):
        upstream.plays("quick", actions.answers())
        talk = await client.conversations.create(items=[{"role": "user", "content": "first"}])
        await client.conversations.items.create(
            talk.id, items=[{"role": "user", "content": "second"}]
        )
        asked: Any = {"model": "openai/quick", "conversation": talk.id}
        stream = await client.responses.create(input="streamed", stream=True, **asked)
        async for event in stream:
            if event.type == "response.completed":
                break
        await client.responses.create(input="whole", store=False, **asked)

        family = processes.family(started.process.pid)
        os.kill(processes.of_modules(family, [WORKER])[WORKER], signal.SIGKILL)

        async def listed() -> list[str] | None:
            try:
                page = await client.conversations.items.list(talk.id, order="asc")
            except openai.APIConnectionError:
                return None
            return [item.content[0].text for item in page.data]

        texts = ["first", "second", "streamed", actions.TEXT, "whole", actions.TEXT]
        assert await until(listed, within_s=SOON_S) == texts
        again = await client.responses.create(input="more", **asked)
        assert again.status == "completed"
        assert await listed() == [*texts, "more", actions.TEXT]


async def test_a_killed_facade_leaves_its_responses_running(tmp_path: Path) -> None:
    async with running(tmp_path, apart=True) as (started, upstream, client):
        gate = Gate()
        upstream.plays("held", gate.action)
        asked: Any = {"model": "openai/held", "input": "Hi", "background": True}
        cancelled = await client.responses.create(**asked)
        await until(lambda: upstream.asked("held"), within_s=SOON_S)
        await client.responses.cancel(cancelled.id)
        await upstream.asked("held")[0].left.wait()
        followed = await client.responses.create(**asked, stream=True)
        kept = (await anext(aiter(followed))).response
        await until(lambda: len(upstream.asked("held")) == 2, within_s=SOON_S)

        os.kill(started.process.pid, signal.SIGKILL)

        address = f"127.0.0.1:{started.services_port}"
        async with open_channel(address, max_message_bytes=1 << 20) as channel:
            service = ResponseServiceStub(channel)
            metadata = call_metadata(started.key, "req_1")

            async def stored() -> StoredResponse:
                request = GetResponseRequest(id=kept.id)
                found: Any = await service.GetResponse(request, metadata=metadata)
                return found.response

            async def ended() -> StoredResponse | None:
                found = await stored()
                return found if found.state == StoredResponse.STATE_ENDED else None

            assert (await stored()).state == StoredResponse.STATE_IN_PROGRESS
            gate.opened.set()
            [item] = (await until(ended, within_s=SOON_S, every_s=0.05)).content.output
        assert actions.TEXT.encode() in item.json
        assert len(upstream.asked("held")) == 2


async def _has_ended(client: AsyncOpenAI, response_id: str) -> bool:
    """Return whether a response has ended; the worker may not answer for a while."""
    try:
        return (await client.responses.retrieve(response_id)).status not in RUNNING
    except openai.APIConnectionError:
        return False
