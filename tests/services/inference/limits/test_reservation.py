"""Reservations of requests: their input, the most output, and the highest price of their plan."""

from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.common.errors import GatewayError
from services.common.messages.lazy_request import LazyRequest
from services.inference.limits.fees import Fees, fees_of
from services.inference.limits.input_tokens import most_input_tokens
from services.inference.limits.reservation import UNKNOWN_OUTPUT, Demand
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import Retries
from services.inference.pricing.price import MostUsage, Rate, Unit, highest_cost
from services.inference.providers.base import Target
from tests.grid import each_row

ANTHROPIC = conversation_pb2.DIALECT_ANTHROPIC
PRICES = {
    "cheap": {Unit.INPUT: Rate(1), Unit.OUTPUT: Rate(10)},
    "dear": {Unit.INPUT: Rate(3), Unit.OUTPUT: Rate(5), Unit.WEB_SEARCH: Rate(1_000)},
}


class Prices:
    def highest_cost(
        self, usage: MostUsage, provider: str, model: str, upstream: str
    ) -> int | None:
        return highest_cost(PRICES[model], usage) if model in PRICES else None


def step(name: str, limit: int = 0, **fields: Any) -> Step:
    target = Target(name, "p", name, max_output_tokens=limit)
    return Step("s", target, 60, Retries(), **fields)


def demand(request: GenerateRequest, *steps: Step, is_native: bool = True) -> Demand:
    return Demand(Plan(steps), request, fees_of(request), Prices(), is_native=is_native)


@pytest.mark.parametrize(
    ("fields", "limit", "output"),
    [
        ({"max_tokens": 50}, 0, 50),
        ({"max_tokens": 50, "n": 3}, 0, 150),
        ({"max_tokens": 5_000}, 100, 100),
        ({}, 100, 100),
        ({}, 0, UNKNOWN_OUTPUT),
    ],
)
def test_the_most_output_is_reserved(fields: dict[str, Any], limit: int, output: int) -> None:
    reserved = demand(GenerateRequest(**fields), step("cheap", limit)).reservation(7)
    assert reserved == (1, 7 + output, 7 + 10 * output)


def test_the_dearest_model_counts() -> None:
    request = GenerateRequest(max_tokens=10)
    steps = step("cheap"), step("dear")
    assert demand(request, *steps).reservation(1).cost_pusd == 101
    assert demand(request, *steps).reservation(1_000).cost_pusd == 3_050
    places = step("cheap", deployments=steps)
    assert demand(request, places).reservation(1_000).cost_pusd == 3_050


def test_parameters_of_a_step_count() -> None:
    long = Message(blocks=[Block(text="words " * 1_000)])
    own = GenerateRequest(max_tokens=99, messages=[long])
    reserved = demand(GenerateRequest(max_tokens=1), step("cheap", parameters=own)).reservation(5)
    assert reserved.tokens == 99 + most_input_tokens(own)
    own = GenerateRequest(service_tier="priority")
    with pytest.raises(GatewayError, match=r"^steps\[0\]\.parameters\.service_tier: "):
        demand(GenerateRequest(), step("cheap", parameters=own, path="steps[0]")).reservation(5)


def test_earlier_rounds_add_their_output() -> None:
    one = demand(GenerateRequest(max_tokens=10), step("cheap"))
    assert one.reservation(20, 30) == (1, 60, 20 + 400)


def test_without_a_budget_no_price_is_needed() -> None:
    request = GenerateRequest(max_tokens=10, service_tier="priority")
    assert Demand(Plan((step("nobody"),)), request, None, Prices()).reservation(5) == (1, 15, 0)


def test_no_more_input_counts_than_any_model_reads() -> None:
    one = demand(GenerateRequest(max_tokens=1), step("cheap"))
    assert one.reservation(10**9).tokens == (1 << 20) + 1


@pytest.mark.parametrize(("path", "named"), [("", "model"), ("steps[2]", r"steps\[2\]\.model")])
def test_a_model_without_a_price_is_refused(path: str, named: str) -> None:
    with pytest.raises(GatewayError, match=f"^{named}: the caller has a budget, and the price"):
        demand(GenerateRequest(), step("cheap"), step("nobody", path=path)).reservation(5)


def tool(**fields: Any) -> Tool:
    return Tool(opaque=True, extra=Opaque(dialect=ANTHROPIC, json=orjson.dumps(fields)))


def extra(**fields: Any) -> dict[str, Any]:
    return {"extra": Opaque(json=orjson.dumps(fields))}


@each_row(
    ("fields", "path"),
    [
        ({"service_tier": "priority"}, "service_tier"),
        (extra(speed="fast"), "speed"),
        (extra(inference_geo="us"), "inference_geo"),
        (extra(plugins=[{"id": "web"}]), "plugins"),
        ({"tools": [Tool(name="f"), tool(type="code_execution_20250825")]}, "tools[1]"),
        ({"tools": [tool(type="image_generation")]}, "tools[0]"),
        ({"tools": [tool(google_search={})]}, "tools[0]"),
        ({"tools": [tool(type="web_search_2025_08_26")]}, "tools[0]"),
    ],
)
def test_what_has_no_known_price_is_refused(fields: dict[str, Any], path: str) -> None:
    request = GenerateRequest(max_tokens=1, **fields)
    with pytest.raises(GatewayError) as raised:
        demand(request, step("cheap")).reservation(5)
    assert (raised.value.param, raised.value.code) == (path, "permission_denied")
    # A provider of another dialect is not sent it.
    demand(request, step("cheap"), is_native=False).reservation(5)


@pytest.mark.parametrize(
    "fields",
    [
        {"service_tier": "flex"},
        extra(speed="standard", inference_geo="global", plugins=[]),
        {"tools": [tool(type="bash_20250124", name="bash"), tool(type="custom", name="x")]},
    ],
)
def test_what_costs_no_more_is_allowed(fields: dict[str, Any]) -> None:
    assert demand(GenerateRequest(max_tokens=1, **fields), step("cheap")).reservation(5)


@pytest.mark.parametrize(("uses", "searches"), [({"max_uses": 2}, 2), ({}, 10)])
def test_searches_are_reserved(uses: dict[str, int], searches: int) -> None:
    search = tool(type="web_search_20250305", name="web_search", **uses)
    request = GenerateRequest(max_tokens=1, tools=[search])
    assert demand(request, step("dear")).reservation(0).cost_pusd == 5 + 1_000 * searches
    with pytest.raises(GatewayError, match=r"^tools\[0\]: .* the price of a search"):
        demand(request, step("cheap")).reservation(0)
    googles = GenerateRequest(max_tokens=1, tools=[tool(googleSearch={}), tool(urlContext={})])
    assert demand(googles, step("dear")).reservation(0).cost_pusd == 5 + 1_000 * 10


@pytest.mark.parametrize(
    "fields",
    [
        extra(web_search_options={}),
        {"tools": [tool(type="web_search")]},
        {"tools": [tool(type="web_search_20250305", name="web_search")]},
    ],
)
def test_searches_by_a_providers_own_tool_are_reserved(fields: dict[str, Any]) -> None:
    request = GenerateRequest(max_tokens=1, **fields)

    def reserved(name: str) -> int:
        of_request = Demand(
            *(Plan([step(name)]), request, fees_of(request), Prices()),
            is_native=False,
            translates_searches=True,
        )
        return of_request.reservation(0).cost_pusd

    assert reserved("dear") == 5 + 10 * 1_000
    with pytest.raises(GatewayError, match=r"the price of a search"):
        reserved("cheap")


def test_a_lazy_request_has_the_same_fees() -> None:
    fields = {
        "messages": orjson.Fragment(b'[{"role":"user","content":"Hi"}]'),
        "tools": orjson.Fragment(b'[{"type":"function"},{"type":"web_search_20250305"}]'),
    }
    lazy = LazyRequest(GenerateRequest(), fields, size=1, requires_official_api=False)
    assert fees_of(lazy) == Fees(searches=10, search_path="tools[1]", translated_searches=10)
    fields = {**fields, "service_tier": "priority", "system": [{"cache_control": {"ttl": "1h"}}]}
    lazy = LazyRequest(GenerateRequest(), fields, size=1, requires_official_api=False)
    fees = fees_of(lazy)
    assert fees.unpriced is not None and fees.unpriced[0] == "service_tier"
    assert fees.inputs == {Unit.CACHE_WRITE_1H}


def test_an_hour_in_the_cache_is_found_everywhere() -> None:
    hour = b'{"type":"ephemeral","ttl":"1h"}'
    block = Block(text="a", cache_control=hour)
    for request in (
        GenerateRequest(cache_control=hour),
        GenerateRequest(tools=[Tool(name="f", cache_control=hour)]),
        GenerateRequest(messages=[Message(blocks=[block])]),
    ):
        assert fees_of(request).inputs == {Unit.CACHE_WRITE_1H}


def media(kind: int, **source: Any) -> GenerateRequest:
    return GenerateRequest(messages=[Message(blocks=[Block(media=Media(kind=kind, **source))])])


def test_media_that_were_not_read_count_in_full() -> None:
    document, audio = conversation_pb2.MEDIA_KIND_DOCUMENT, conversation_pb2.MEDIA_KIND_AUDIO
    assert most_input_tokens(media(document, url="https://x/a.pdf")) > 100 * 3_000
    assert most_input_tokens(media(audio, url="https://x/a.mp3")) > 100_000
    packed = b"%PDF-1.5 /ObjStm" + bytes(400_000)
    assert most_input_tokens(media(document, data=packed)) > 100 * 3_000
    plain = b"%PDF-1.4 /Type /Page" + bytes(400_000)
    assert most_input_tokens(media(document, data=plain)) < 10_000
