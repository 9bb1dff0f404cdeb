"""Facts about well-known models, and the providers of their bare names."""

import tomllib
from importlib.resources import files

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from services.inference.diagnostics import EFFORTS
from services.inference.facts.catalogue import (
    MAKERS,
    UNKNOWN,
    ModelInfo,
    ServerFacts,
    context_window,
    facts_of,
    maker_of,
    server_facts,
)
from services.inference.learned import refusals
from tests.grid import each_row

TABLE = tomllib.loads(
    files("services.inference.facts").joinpath("catalogue.toml").read_text("utf-8")
)
IMAGE = conversation.MEDIA_KIND_IMAGE
DOCUMENT = conversation.MEDIA_KIND_DOCUMENT


@each_row(
    ("kind", "upstream", "window", "output"),
    [
        ("openai", "gpt-4o", 128_000, 16_384),
        ("openai", "gpt-4o-2024-08-06", 128_000, 16_384),
        ("openai", "gpt-4o-2024-05-13", 128_000, 4_096),
        ("openai", "gpt-4.1-mini", 1_047_576, 32_768),
        ("openai", "o3-2025-04-16", 200_000, 100_000),
        ("openai", "gpt-5-mini-2025-08-07", 400_000, 128_000),
        ("openai", "gpt-5-chat-latest", 128_000, 16_384),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme::id", 128_000, 16_384),
        ("anthropic", "claude-3-5-sonnet-latest", 200_000, 8_192),
        ("anthropic", "claude-sonnet-4-20250514", 200_000, 64_000),
        ("anthropic", "claude-opus-4-1-20250805", 200_000, 32_000),
        ("anthropic", "claude-haiku-4-5", 200_000, 64_000),
        ("anthropic", "claude-opus-4-6", 1_000_000, 128_000),
        ("anthropic", "claude-opus-5-5", 1_000_000, 128_000),
        ("openai", "gpt-5.2-2025-12-11", 400_000, 128_000),
        ("openai", "gpt-5.6", 1_050_000, 128_000),
        ("gemini", "gemini-2.5-flash", 1_048_576, 65_536),
    ],
)
def test_listed_models_have_their_limits_whatever_the_snapshot(
    kind: str, upstream: str, window: int, output: int
) -> None:
    facts = facts_of(kind, upstream)
    assert (facts.context_window, facts.max_output_tokens) == (window, output)


@each_row(
    ("kind", "upstream"),
    [
        ("openai", "gpt-4o-realtime-preview"),
        ("openai", "gpt-9"),
        ("openai", "o3-pro"),
        ("anthropic", "claude-sonnet-4-9"),
        ("gemini", "gemini-4-pro"),
        ("gemini", "gemini-embedding-001"),
        ("anthropic", "claude-opus-4-10"),
        ("anthropic", "claude-3-7-sonnet-20250219"),
    ],
)
def test_a_relative_of_a_listed_model_gets_no_limit_of_output(kind: str, upstream: str) -> None:
    assert facts_of(kind, upstream).max_output_tokens == 0


def test_a_new_model_reads_what_its_family_reads() -> None:
    assert facts_of("anthropic", "claude-opus-9").inputs == {IMAGE, DOCUMENT}
    assert facts_of("openai", "gpt-9").inputs == {IMAGE, DOCUMENT}
    assert facts_of("openai", "gpt-4-0613").inputs == frozenset()
    assert facts_of("openai", "o3-mini-2025-01-31").inputs == frozenset()
    assert facts_of("openai", "gpt-audio-mini").inputs == {conversation.MEDIA_KIND_AUDIO}


@pytest.mark.parametrize("upstream", ["llama3.2", "yi:8b", "mistral-large"])
def test_nothing_is_known_of_models_of_nobody_in_particular(upstream: str) -> None:
    assert facts_of("openai", upstream) == UNKNOWN
    assert maker_of(upstream) == ""


@pytest.mark.parametrize(
    "upstream", ["openai/gpt-oss-20b", "gpt-oss:20b", "deepseek-reasoner", "deepseek-r1:7b"]
)
def test_models_that_always_think_are_known_to(upstream: str) -> None:
    facts = facts_of("openai", upstream)
    assert facts == ModelInfo(thinking=True, efforts=facts.efforts)


def test_names_mean_nothing_at_providers_of_other_dialects() -> None:
    assert facts_of("openai", "claude-haiku-4-5") == UNKNOWN
    assert facts_of("anthropic", "gpt-4o") == UNKNOWN
    assert facts_of("sandbox", "gpt-4o") == UNKNOWN


@each_row(
    ("upstream", "maker"),
    [
        ("gpt-4o", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("o1", "openai"),
        ("o4-mini", "openai"),
        ("ft:gpt-4o:acme::id", "openai"),
        ("claude-opus-5", "anthropic"),
        ("gemini-flash-latest", "gemini"),
        ("claude", ""),
        ("olmo", ""),
        ("", ""),
    ],
)
def test_bare_names_match_makers_by_their_prefix(upstream: str, maker: str) -> None:
    assert maker_of(upstream) == maker


def test_listed_models_have_a_display_name_and_a_maker() -> None:
    for kind, maker in MAKERS.items():
        for upstream, facts in maker.models.items():
            assert facts.display_name
            assert maker_of(upstream) == kind
            assert facts.max_output_tokens <= facts.context_window


def test_every_listed_name_finds_its_own_facts() -> None:
    for kind, maker in MAKERS.items():
        for upstream, facts in maker.models.items():
            assert facts_of(kind, upstream) is facts


@each_row(
    ("base_url", "refuses"),
    [
        ("https://api.openai.com/v1", {"max_tokens", "top_k", "reasoning_content"}),
        ("https://us.api.openai.com/v1", {"max_tokens", "top_k", "reasoning_content"}),
        ("https://acme.openai.azure.com/openai/v1", {"max_tokens", "top_k", "reasoning_content"}),
        (
            "https://api.mistral.ai/v1",
            {
                *("max_completion_tokens", "reasoning_content", "stream_options"),
                *("user_after_tool", "long_ids", "user", "logprobs"),
            },
        ),
        ("https://generativelanguage.googleapis.com/v1beta/openai", {"unsigned_calls"}),
        ("http://localhost:11434/v1", {"max_completion_tokens"}),
        ("http://localhost:8000/v1", set()),
        ("https://evilapi.openai.com.test/v1", set()),
        ("http://[::1]:99999/v1", set()),
    ],
)
def test_a_server_is_known_by_its_host(base_url: str, refuses: set[str]) -> None:
    assert server_facts("openai", base_url).refuses == refuses
    assert server_facts("anthropic", base_url) == ServerFacts()


@pytest.mark.parametrize(
    ("upstream", "off"),
    [
        ("Qwen/Qwen3-8B", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("qwen3:8b", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("google/gemini-2.5-flash", {"reasoning_effort": "none"}),
        ("myqwen3", {}),
    ],
)
def test_a_family_is_known_behind_the_name_of_its_repository(
    upstream: str, off: dict[str, object]
) -> None:
    assert facts_of("openai", upstream).thinking_off == off


def test_models_that_think_take_no_sampling() -> None:
    assert "temperature" in facts_of("openai", "gpt-5-mini").refuses
    assert "temperature" in facts_of("openai", "o3-2025-04-16").refuses
    assert not facts_of("openai", "gpt-4o").refuses
    assert facts_of("anthropic", "claude-opus-4-6").refuses == {"prefill"}
    assert "temperature" in facts_of("anthropic", "claude-opus-5-5-20261101").refuses


@each_row(
    ("kind", "base_url", "upstream", "window"),
    [
        ("openai", "https://api.mistral.ai/v1", "codestral-2508", 256_000),
        ("openai", "https://openrouter.ai/api/v1", "anthropic/claude-opus-5", 1_000_000),
        ("openai", "https://api.openai.com/v1", "gpt-5.3-codex", 400_000),
        ("openai", "https://api.openai.com/v1", "gpt-5.3-codex-2026-02-05", 400_000),
        ("anthropic", "https://api.anthropic.com", "claude-opus-5", 1_000_000),
        ("openai", "https://api.openai.com/v1", "gpt-9", 0),
        # A server of one's own may give a model of that name less room.
        ("openai", "http://localhost:8000/v1", "gpt-oss-120b", 0),
        ("anthropic", "http://localhost:8000", "claude-opus-5", 0),
    ],
)
def test_context_sizes_are_those_of_the_server(
    kind: str, base_url: str, upstream: str, window: int
) -> None:
    assert context_window(server_facts(kind, base_url), upstream) == window


def test_every_section_of_context_sizes_is_there() -> None:
    table = tomllib.loads(files("services.inference.facts").joinpath("catalogue.toml").read_text())
    sizes = orjson.loads(
        files("services.inference.facts").joinpath("context_sizes.json").read_bytes()
    )
    named = {server["sizes"] for server in table["servers"] if "sizes" in server}
    assert named == sizes.keys()
    for section in sizes.values():
        assert all(name and 0 < size < 100_000_000 for name, size in section.items())


def test_field_names_in_the_catalogue_are_valid_settings():
    makers = TABLE["makers"].values()
    entries = [
        *TABLE["servers"],
        *(family for maker in makers for family in maker["families"]),
        *(model for maker in makers for model in maker["models"].values()),
    ]
    assert {name for entry in entries for name in entry.get("refuses", ())} <= refusals.NAMES
    assert {name for entry in entries for name in entry.get("efforts", ())} <= {*EFFORTS}


_ARN = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile"


@pytest.mark.parametrize(
    ("upstream", "name"),
    [
        ("us.anthropic.claude-opus-4-7-v1", "Claude Opus 4.7"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "Claude Sonnet 4.5"),
        (f"{_ARN}/eu.anthropic.claude-opus-4-1-20250805-v1:0", "Claude Opus 4.1"),
        ("amazon.nova-pro-v1:0", ""),
    ],
)
def test_bedrocks_names_are_their_makers(upstream: str, name: str) -> None:
    assert facts_of("bedrock", upstream).display_name == name
