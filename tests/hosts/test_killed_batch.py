"""A batch that two hosts run over one database, of which one is killed in the middle."""

import json
import time
from typing import Any

import openai

from tests.hosts.cluster import Administrator, Cluster, start_again
from tests.thoroughness import is_soak
from tests.waiting import until

REQUESTS = 10_000 if is_soak() else 200
# Its answers take a moment, so that there is a middle.
MODEL = "sandbox/echo" if is_soak() else "sandbox/slow"
SOON_S = 60.0 if not is_soak() else 1_200.0


async def test_a_killed_host_loses_and_repeats_no_result(
    cluster: Cluster, admin: Administrator
) -> None:
    dying, other = cluster.hosts[:2]
    key = await admin.key("batcher")
    async with (
        openai.AsyncOpenAI(base_url=f"{dying.url}/v1", api_key=key) as first,
        openai.AsyncOpenAI(base_url=f"{other.url}/v1", api_key=key) as client,
    ):
        text = "\n".join(json.dumps(_line(number)) for number in range(REQUESTS))
        file = await first.files.create(file=("in.jsonl", text.encode()), purpose="batch")
        began_at = time.monotonic()
        # The host that has created a batch is the first to run some of it.
        created = await first.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )

        async def is_in_the_middle() -> bool:
            counts = (await client.batches.retrieve(created.id)).request_counts
            return counts is not None and counts.completed > REQUESTS // 4

        await until(is_in_the_middle, within_s=SOON_S, every_s=0.02)
        dying.kill()
        killed_at = time.monotonic()
        ended: Any = await until(lambda: _ended(client, created.id), within_s=SOON_S, every_s=0.05)
        ended_at = time.monotonic()
        print(
            f"{REQUESTS:,} requests in {ended_at - began_at:.1f} s, "
            f"killed at {killed_at - began_at:.1f}"
        )
        await start_again(cluster, dying)
        assert ended.status == "completed", ended
        counts = ended.request_counts
        assert (counts.total, counts.completed, counts.failed) == (REQUESTS, REQUESTS, 0)
        assert ended.error_file_id is None
        content = (await client.files.content(ended.output_file_id)).text
        results = [json.loads(line) for line in content.splitlines()]
        assert [line["custom_id"] for line in results] == [f"r{n}" for n in range(REQUESTS)]
        assert all(f"text {n} " in _answer(line) for n, line in enumerate(results))
        outputs = [
            each.id
            async for each in client.files.list(purpose="batch_output")
            if created.id in each.filename
        ]
        assert outputs == [ended.output_file_id]


async def _ended(client: openai.AsyncOpenAI, batch_id: str) -> Any:
    batch = await client.batches.retrieve(batch_id)
    return batch if batch.status in ("completed", "failed", "expired", "cancelled") else None


def _line(number: int) -> dict[str, Any]:
    content = f"text {number} ends"
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}]}
    return {
        "custom_id": f"r{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }


def _answer(line: dict[str, Any]) -> str:
    text: str = line["response"]["body"]["choices"][0]["message"]["content"]
    return text
