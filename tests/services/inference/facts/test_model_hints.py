"""Hints for unknown models."""

from services.common.settings.presets import PRESETS
from services.inference.facts.model_hints import NamesByLikeness, missing_provider
from tests.grid import each_row

NAMES = [
    *("fast", "sandbox/echo", "openai/gpt-4o", "openai/gpt-4o-mini"),
    *("anthropic/claude-sonnet-4-5", "openrouter/meta/llama-4"),
]


@each_row(
    ("name", "meant"),
    [
        ("echo", "sandbox/echo"),
        ("sandbox/ehco", "sandbox/echo"),
        ("gpt4o", "openai/gpt-4o"),
        ("GPT-4o", "openai/gpt-4o"),
        ("azure/gpt-4o", "openai/gpt-4o"),
        ("gpt-4o-mimi", "openai/gpt-4o-mini"),
        ("claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        ("llama4", "openrouter/meta/llama-4"),
        ("Fast", "fast"),
        ("fsat", "fast"),
        ("mistral-large", ""),
        ("/", ""),
        ("", ""),
        ("模型", ""),
    ],
)
def test_a_similar_name_is_found(name: str, meant: str) -> None:
    assert NamesByLikeness(NAMES).find(name, lambda _: True) == meant


def test_a_name_that_is_not_allowed_is_not_found() -> None:
    names = NamesByLikeness(NAMES)
    assert names.find("gpt4o", lambda name: name != "openai/gpt-4o") != "openai/gpt-4o"
    assert names.find("echo", lambda _: False) == ""


def test_few_names_of_many_are_compared() -> None:
    names = NamesByLikeness([f"provider/model-{number}" for number in range(20_000)])
    counted = []
    names.find("model-xyz", lambda name: counted.append(name) is None)
    assert len(counted) <= 101


@each_row(
    ("name", "expected"),
    [
        ("openai/gpt-4o", "no provider openai is configured; set OPENAI_API_KEY"),
        ("gpt-4o", "set OPENAI_API_KEY, or add [providers.openai]"),
        ("gpt4o", "set OPENAI_API_KEY"),
        ("claude-haiku-4-5", "set ANTHROPIC_API_KEY"),
        ("groq/llama", "set GROQ_API_KEY"),
        ("sandbox/echo", "the sandbox is absent; set `enabled = true` in [sandbox]"),
        ("ollama/llama3", ""),
        ("something", ""),
    ],
)
def test_a_missing_provider_is_named(name: str, expected: str) -> None:
    message = missing_provider(name, {})
    assert expected in message
    assert bool(message) == bool(expected)
    assert missing_provider(name, {**dict.fromkeys(PRESETS, "openai"), "sandbox": "sandbox"}) == ""
