"""What is billed of Anthropic's answers that list tokens apart: compactions, and advisors."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.gateway_in_process import serving
from tests.limited_callers import MESSAGE, LimitedGateways, limited_gateways, post
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGES, ME = "/beta/v1/messages", "/beta/v1/usage/me"
KINDS = ("input", "output", "cached", "cache_written")
DOLLAR = 10**12
# A token costs a cent, one that is written to a cache for an hour four.
PRICE = {
    **{"input": 10_000, "output": 10_000, "cached_input": 10_000, "cache_write": 10_000},
    "cache_write_1h": 40_000,
}
COMPACTION = {
    "type": "compaction",
    **{"input_tokens": 180, "output_tokens": 35},
    **{"cache_read_input_tokens": 9, "cache_creation_input_tokens": 2},
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 2},
}
ADVICE = {
    **{"type": "advisor_message", "model": "claude-adviser"},
    **{"input_tokens": 50, "output_tokens": 20},
    **{"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
}
REPLY = {
    "type": "message",
    **{"input_tokens": 20, "output_tokens": 4},
    **{"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
}
SUMMED = {name: count for name, count in REPLY.items() if name != "type"}
# By model of the caller: the iterations, and the tokens and cents that they take in all.
CASES: dict[str, tuple[list[Any], int, int]] = {
    "plain": ([REPLY], 24, 24),
    "compacting": ([COMPACTION, REPLY], 24 + 226, 24 + 226 + 2 * 3),
    "advised": ([REPLY, ADVICE], 24 + 70, 24 + 70),
    "both": ([COMPACTION, REPLY, ADVICE], 24 + 226 + 70, 24 + 226 + 6 + 70),
    # Nothing but text: the answer would be passed through.
    "odd": ([{"type": "compaction", "input_tokens": "many"}, 5, COMPACTION], 24 + 226, 24 + 232),
}


def _message(model: str) -> dict[str, Any]:
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": model},
        "content": [{"type": "text", "text": "Hi."}],
        **{"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {**SUMMED, "iterations": CASES[model][0]},
    }


async def _answer(request: web.Request) -> web.Response:
    body = await request.json()
    message = _message(body["model"])
    if not body.get("stream"):
        return web.json_response(message)
    content, usage = message["content"][0], message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "usage": {**SUMMED, "output_tokens": 1}}
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": content},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    return web.Response(text=text, content_type="text/event-stream")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LimitedGateways]:
    folder = tmp_path_factory.mktemp("gateway")
    app = web.Application()
    app.router.add_post("/v1/messages", _answer)
    async with serving(app) as url:
        provider = {"kind": "anthropic", "base_url": url, "api_key": "k", "price": PRICE}
        async with limited_gateways(
            folder,
            Storage(data_dir=folder),
            providers={"anthropic": provider},
            usage={"write_every_s": 0.05},
            limits={"lease_every_s": 0.05},
        ) as gateways:
            yield gateways


@pytest.mark.parametrize("stream", [False, True])
async def test_records_and_budgets_have_them(limited: LimitedGateways, stream: bool) -> None:
    for model in CASES:
        await _ask(limited, model, stream)


async def _ask(limited: LimitedGateways, model: str, stream: bool) -> None:
    """Send a request of a new caller; wait until its usage is recorded, and its budget settled."""
    iterations, tokens, cents = CASES[model]
    [gateway] = limited.gateways
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(spend_per_day_pusd=100 * DOLLAR))
    body = {**MESSAGE, "model": f"anthropic/{model}", "stream": stream}
    headers = {**caller, "anthropic-version": "2023-06-01"}
    status, data, _ = await post(gateway, MESSAGES, body, headers)
    # What the caller is shown is what the provider has said.
    shown = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: ")]
    usage = (shown[-2] if stream else json.loads(data))["usage"]
    assert (status, usage["iterations"]) == (200, iterations), model
    assert (usage["input_tokens"], usage["output_tokens"]) == (20, 4), model

    async def is_recorded() -> bool:
        async with gateway.http.get(gateway.url + ME, headers=caller) as answer:
            own = await answer.json()
        used, cost = own["usage"]["day"], f"{cents / 100:g}"
        used_tokens: int = sum(used[f"{kind}_tokens"] for kind in KINDS)
        is_settled = used["cost"] == own["limits"][0]["used"] == cost
        return (used["requests"], used_tokens, is_settled) == (1, tokens, True)

    await until(is_recorded)
