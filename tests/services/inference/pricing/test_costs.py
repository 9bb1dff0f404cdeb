"""Costs of answers: published prices, computed by hand, and prices of the settings."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest

from gateway.conversation.v1.conversation_pb2 import HelperUsage, Opaque, Usage
from services.common.settings import Model, Price, Provider, SettingsError, parse
from services.inference.models.routing import Models
from services.inference.pricing.costs import Costs
from services.inference.pricing.price import MostUsage, Rate, Unit, highest_cost
from services.inference.providers.base import Target
from services.inference.usage.metering import Metering
from services.inference.usage.records import cost_of_used
from services.inference.usage.request_usage import RequestUsage, current_usage
from tests.grid import each_row

MODEL = '[providers.openai]\n[[models]]\nname="m"\nprovider="openai"\nprice={{input={}}}'
NOON_MS = 1_795_435_200_000  # 2026-11-23 12:00:00 UTC
PROVIDERS = {
    "openai": Provider(kind="openai", base_url="https://api.openai.com/v1"),
    "anthropic": Provider(kind="anthropic", base_url="https://api.anthropic.com"),
    "gemini": Provider(kind="gemini", base_url="https://generativelanguage.googleapis.com"),
    "deepseek": Provider(kind="openai", base_url="https://api.deepseek.com"),
    "azure": Provider(kind="openai", base_url="https://mine.openai.azure.com/openai/v1"),
    "ollama": Provider(kind="openai", base_url="http://127.0.0.1:11434/v1"),
    "mine": Provider(
        kind="openai",
        base_url="http://gpu:8000/v1",
        price=Price(input=Decimal(0), output=Decimal(0)),
    ),
}


def costs(configured: Sequence[Model] = (), providers: Mapping[str, Provider] = PROVIDERS) -> Costs:
    models = Models(configured, providers, {}, {})
    return Costs(providers, models.configured, lambda: NOON_MS)


def dollars(cost: int | None) -> Decimal | None:
    return None if cost is None else Decimal(cost) / 10**12


# Prices as their makers published them on 2026-11-20, for a million tokens:
#   gpt-4o             $2.50 in, $1.25 cached, $10 out
#   gpt-5.4            $2.50 in, $0.25 cached, $15 out; above 272k in $5, $0.50, $22.50
#   claude-opus-4-5    $5 in, $0.50 cached, $6.25 and $10 (1 h) written, $25 out, searches $0.01
#   gemini-2.5-pro     $1.25 in, $0.125 cached, $10 out; above 200k $2.50, $0.25, $15
#   gemini-2.5-flash   $0.30 in, audio $1.00, $2.50 out
@each_row(
    ("provider", "model", "usage", "expected"),
    [
        ("openai", "gpt-4o", Usage(input_tokens=1000, output_tokens=500), "0.0075"),
        (
            "openai",
            "gpt-4o-2024-11-20",
            Usage(input_tokens=600, cache_read_input_tokens=400, output_tokens=1),
            "0.00201",
        ),
        (
            "openai",
            "gpt-5.4",
            Usage(input_tokens=272_000, output_tokens=1000, reasoning_tokens=900),
            "0.695",
        ),
        ("openai", "gpt-5.4", Usage(input_tokens=272_001, output_tokens=1000), "1.382505"),
        (
            "anthropic",
            "claude-opus-4-5-20251101",
            Usage(
                input_tokens=100,
                cache_creation_input_tokens=1000,
                cache_read_input_tokens=10_000,
                output_tokens=200,
                extra=Opaque(
                    json=json.dumps(
                        {
                            "cache_creation": {"ephemeral_1h_input_tokens": 400},
                            "server_tool_use": {"web_search_requests": 2},
                        }
                    ).encode()
                ),
            ),
            # 0.0005 + 600·6.25 + 400·10 + 0.005 + 0.005 + 2 searches
            "0.03825",
        ),
        ("gemini", "gemini-2.5-pro", Usage(input_tokens=200_001, output_tokens=100), "0.5015025"),
        (
            "gemini",
            "gemini-2.5-flash",
            Usage(
                input_tokens=1000,
                output_tokens=100,
                extra=Opaque(
                    json=b'{"promptTokensDetails":[{"modality":"TEXT","tokenCount":200},'
                    b'{"modality":"AUDIO","tokenCount":800}]}'
                ),
            ),
            "0.00111",
        ),
        ("azure", "gpt-4o", Usage(input_tokens=1000, output_tokens=500), "0.0075"),
    ],
)
def test_published_prices(provider: str, model: str, usage: Usage, expected: str) -> None:
    assert dollars(costs().cost_of(usage, provider, f"{provider}/{model}")) == Decimal(expected)


def test_prices_change_with_the_hour() -> None:
    # deepseek-v4-pro: $0.66 in, and $1.32 from 01:00 to 04:00 and from 06:00 to 10:00 UTC
    there, usage = costs(), Usage(input_tokens=1_000_000)
    hour = 3_600_000
    for at, expected in ((0, "0.66"), (-3 * hour, "1.32"), (-2 * hour, "0.66")):
        cost = there.cost_of(usage, "deepseek", "deepseek/deepseek-v4-pro", at_ms=NOON_MS + at)
        assert dollars(cost) == Decimal(expected)


def test_prices_change_with_the_day() -> None:
    # claude-sonnet-4-6 cost more above 200k tokens until 2026-03-13.
    usage, day = Usage(input_tokens=300_000), 86_400_000
    then = NOON_MS - 300 * day
    there = costs()
    assert dollars(there.cost_of(usage, "anthropic", "claude-sonnet-4-6")) == Decimal("0.9")
    before = there.cost_of(usage, "anthropic", "claude-sonnet-4-6", at_ms=then)
    assert dollars(before) == Decimal("1.8")


def test_unknown_models_and_servers_have_no_cost() -> None:
    usage = Usage(input_tokens=1, output_tokens=1)
    for provider, model in (
        ("openai", "openai/gpt-17"),
        ("gone", "gone/gpt-4o"),
    ):
        assert costs().cost_of(usage, provider, model) is None


def test_the_sandbox_costs_nothing() -> None:
    assert costs().cost_of(Usage(input_tokens=9), "sandbox", "sandbox/echo") == 0


def test_servers_on_this_machine_are_free_without_a_key() -> None:
    usage = Usage(input_tokens=1, output_tokens=1)
    assert costs().cost_of(usage, "ollama", "ollama/gpt-4o") == 0
    for url in ("http://localhost:1234/v1", "http://[::1]:1/v1"):
        mine = {"mine": Provider(kind="openai", base_url=url)}
        assert costs(providers=mine).cost_of(usage, "mine", "mine/m") == 0
        # With a key, it may well be a proxy of a server that bills.
        keyed = {"mine": Provider(kind="openai", base_url=url, api_key_env="KEY")}
        assert costs(providers=keyed).cost_of(usage, "mine", "mine/m") is None
    gpu = {"mine": Provider(kind="openai", base_url="http://gpu:8000/v1")}
    assert costs(providers=gpu).cost_of(usage, "mine", "mine/m") is None


@each_row(
    ("provider", "model", "most", "expected"),
    [
        ("openai", "gpt-4o", MostUsage(1000, 500), "0.0075"),
        # The tier is that of the input: $5 and $22.50.
        ("openai", "gpt-5.4", MostUsage(300_000, 1000), "1.5225"),
        # Caches are written at $6.25, for an hour at $10.
        ("anthropic", "claude-opus-4-5", MostUsage(1000, 0), "0.00625"),
        (
            "anthropic",
            "claude-opus-4-5",
            MostUsage(1000, 100, 3, frozenset({Unit.CACHE_WRITE_1H})),
            "0.0425",
        ),
        ("gemini", "gemini-2.5-flash", MostUsage(1000, 0), "0.0003"),
        (
            "gemini",
            "gemini-2.5-flash",
            MostUsage(1000, 0, 0, frozenset({Unit.INPUT_AUDIO})),
            "0.001",
        ),
        ("openai", "gpt-17", MostUsage(1, 1), None),
        ("anthropic", "claude-3-haiku-20240307", MostUsage(1, 1, 1), None),
    ],
)
def test_the_highest_cost_is_that_of_the_dearest_units(
    provider: str, model: str, most: MostUsage, expected: str | None
) -> None:
    cost = dollars(costs().highest_cost(most, provider, model, model))
    assert cost == (None if expected is None else Decimal(expected))


def test_an_hour_in_the_cache_needs_its_own_price() -> None:
    price = {unit: Rate(1) for unit in (Unit.INPUT, Unit.OUTPUT, Unit.CACHE_WRITE)}
    hour = MostUsage(1, 1, inputs=frozenset({Unit.CACHE_WRITE_1H}))
    assert highest_cost(price, MostUsage(1, 1)) == 2
    assert highest_cost(price, hour) is None
    assert highest_cost({**price, Unit.CACHE_WRITE_1H: Rate(5)}, hour) == 6
    # A price without cache writes is that of all input.
    del price[Unit.CACHE_WRITE]
    assert highest_cost(price, hour) == 2


def test_a_configured_price_comes_first() -> None:
    price = Price(input=Decimal("0.15"), output=Decimal("0.6"), reasoning=Decimal("1"))
    fast = Model(name="fast", provider="openai", upstream="gpt-4o", price=price)
    usage = Usage(input_tokens=10, output_tokens=10, reasoning_tokens=5)
    there = costs([fast, Model(name="other", provider="openai", upstream="gpt-4o")])
    assert there.cost_of(usage, "openai", "fast") == 10 * 150_000 + 5 * 600_000 + 5 * 1_000_000
    assert there.cost_of(usage, "openai", "other") == 10 * 2_500_000 + 10 * 10_000_000


def test_a_wildcard_has_a_price() -> None:
    price = Price(input=Decimal(1))
    there = costs([Model(name="claude-*", provider="mine", price=price)])
    assert there.cost_of(Usage(input_tokens=3), "mine", "claude-x") == 3_000_000


def test_a_providers_price_is_of_all_its_models() -> None:
    assert costs().cost_of(Usage(input_tokens=9, output_tokens=9), "mine", "mine/any") == 0


def test_another_deployment_of_a_name_has_its_own_price() -> None:
    model = Model(name="fast", provider="openai", upstream="gpt-4o", price=Price(input=Decimal(9)))
    usage = Usage(input_tokens=1)
    assert costs([model]).cost_of(usage, "azure", "fast", "gpt-4o") == 2_500_000


@pytest.mark.parametrize(
    ("seconds", "tokens", "expected"),
    [(60.0, 0, "0.006"), (math.inf, 0, "0"), (math.nan, 0, "0"), (60.0, 100, "0.00025")],
)
def test_recordings_are_billed_by_tokens_or_by_time(
    seconds: float, tokens: int, expected: str
) -> None:
    current_usage.set(total := RequestUsage())
    model = "gpt-4o" if tokens else "whisper-1"
    usage = HelperUsage(task="transcribe_audio", input_tokens=tokens, seconds=seconds)
    Metering().add_transcript(Target(model, "openai", model), usage)
    assert dollars(cost_of_used(total.parts[0], costs())) == Decimal(expected)


@pytest.mark.parametrize("written", ["0.15", '"0.15"', "1.5e-1"])
def test_settings_take_prices_without_loss(written: str) -> None:
    settings = parse(tomllib.loads(MODEL.format(written)), "here")
    price = settings.models[0].price
    assert price is not None and price.input == Decimal("0.15")


@pytest.mark.parametrize("written", ["-1", "0.1234567", "nan", "inf", '"a lot"', "1e7"])
def test_settings_refuse_what_is_no_price(written: str) -> None:
    with pytest.raises(SettingsError, match=r"price\.input"):
        parse(tomllib.loads(MODEL.format(written)), "here")
