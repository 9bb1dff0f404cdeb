"""From the names callers write to models behind providers."""

from collections.abc import Mapping, Sequence

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from services.common.errors import GatewayError
from services.common.settings import Model, Provider
from services.inference.facts.catalogue import ModelInfo
from services.inference.models.routing import Models
from services.inference.providers.base import Target

IMAGE = conversation.MEDIA_KIND_IMAGE
DOCUMENT = conversation.MEDIA_KIND_DOCUMENT
AUDIO = conversation.MEDIA_KIND_AUDIO
VIDEO = conversation.MEDIA_KIND_VIDEO

OPENAI = Provider(kind="openai", base_url="https://api.openai.com/v1")
ANTHROPIC = Provider(kind="anthropic", base_url="https://api.anthropic.com")
LOCAL = Provider(kind="openai", base_url="http://127.0.0.1:11434/v1")
PLAYED = Provider(kind="sandbox")
SANDBOX = {
    "echo": ModelInfo("Sandbox echo", frozenset({IMAGE}), 1_000, 100, True, True, True),
    "fail-401": ModelInfo("Sandbox, failing", listed=False),
}


def models(
    configured: Sequence[Model] = (),
    providers: Mapping[str, Provider] | None = None,
    learnt: Mapping[str, Sequence[str]] | None = None,
) -> Models:
    usual = {"openai": OPENAI, "anthropic": ANTHROPIC, "ollama": LOCAL, "sandbox": PLAYED}
    return Models(configured, usual if providers is None else providers, SANDBOX, learnt or {})


def not_found(there: Models, name: str) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        there.resolve(name)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(GatewayError):
        there.get(name)
    return caught.value


def test_a_configured_name_wins_over_every_other_reading() -> None:
    for name in ("gpt-4o", "anthropic/claude-haiku-4-5", "sandbox/echo", "ollama/llama3"):
        there = models(
            [Model(name=name, provider="ollama", upstream="mine")], learnt={"ollama": ["llama3"]}
        )
        target = there.resolve(name)
        assert (target.name, target.provider, target.upstream) == (name, "ollama", "mine")
        assert [model.name for model in there.list()].count(name) == 1


def test_catalogue_facts_fill_in_configured_models() -> None:
    there = models(
        [
            Model(name="fast", provider="openai", upstream="gpt-4o-mini", fallbacks=["claude"]),
            Model(
                name="small",
                provider="openai",
                upstream="gpt-4o-mini",
                inputs=["text"],
                context_window=10,
                max_output_tokens=5,
            ),
            Model(name="llama3", provider="ollama", inputs=["text", "pdf", "audio", "video"]),
        ]
    )
    assert there.resolve("fast") == Target(
        name="fast",
        provider="openai",
        upstream="gpt-4o-mini",
        inputs=frozenset({IMAGE, DOCUMENT}),
        context_window=128_000,
        max_output_tokens=16_384,
        fallbacks=("claude",),
        refuses=frozenset({"max_tokens", "top_k", "reasoning_content"}),
    )
    small = there.resolve("small")
    assert (small.inputs, small.context_window, small.max_output_tokens) == (frozenset(), 10, 5)
    llama = there.resolve("llama3")
    assert llama.upstream == "llama3"
    assert llama.inputs == {DOCUMENT, AUDIO, VIDEO}


def test_any_model_is_found_as_provider_slash_model() -> None:
    target = models().resolve("ollama/org/qwen3:8b")
    assert (target.name, target.provider, target.upstream) == (
        "ollama/org/qwen3:8b",
        "ollama",
        "org/qwen3:8b",
    )
    assert models().resolve("openai/gpt-4o").max_output_tokens == 16_384


def test_the_sandbox_has_its_own_models_alone() -> None:
    target = models(providers={"sandbox": PLAYED}).resolve("sandbox/echo")
    assert target == Target(
        name="sandbox/echo",
        provider="sandbox",
        upstream="echo",
        inputs=frozenset({IMAGE}),
        context_window=1_000,
        max_output_tokens=100,
    )
    assert models().resolve("sandbox/fail-401").upstream == "fail-401"
    not_found(models(), "sandbox/gpt-4o")


def test_another_sandbox_has_the_same_models_under_its_own_name() -> None:
    there = models(providers={"play": PLAYED})
    assert there.resolve("play/echo").provider == "play"
    not_found(there, "play/other")
    not_found(there, "sandbox/echo")


def test_names_of_an_absent_sandbox_are_nobodys() -> None:
    everything = Model(name="*", provider="ollama")
    there = models([everything], {"ollama": LOCAL}, learnt={"sandbox": ["echo"]})
    not_found(there, "sandbox/echo")
    assert not there.offers("sandbox", "echo")
    assert there.list() == []
    assert there.resolve("elsewhere/echo").provider == "ollama"


def test_a_provider_named_sandbox_follows_its_settings() -> None:
    there = models(providers={"sandbox": LOCAL})
    assert there.resolve("sandbox/other").upstream == "other"


@pytest.mark.parametrize(
    ("name", "provider"), [("gpt-4o", "openai"), ("o3", "openai"), ("claude-new", "anthropic")]
)
def test_a_bare_name_goes_to_its_maker(name: str, provider: str) -> None:
    target = models().resolve(name)
    assert (target.name, target.provider, target.upstream) == (name, provider, name)


def test_models_that_think_unasked_are_known_to() -> None:
    google = Provider(kind="gemini", base_url="https://g.test/v1beta")
    there = models(providers={"gemini": google})
    assert there.resolve("gemini-2.5-pro").thinks
    assert not there.resolve("gemini-2.0-flash").thinks


def test_a_maker_is_known_by_its_address_or_its_name() -> None:
    assert models(providers={"mine": OPENAI, "ollama": LOCAL}).resolve("o3").provider == "mine"
    assert models(providers={"openai": LOCAL}).resolve("o3").provider == "openai"


@pytest.mark.parametrize(
    "providers",
    [
        {"ollama": LOCAL},
        {"openai": ANTHROPIC},
        {"mine": Provider(kind="openai", base_url="https://api.openai.com.evil.example/v1")},
    ],
)
def test_a_bare_name_goes_to_nobody_but_its_maker(providers: Mapping[str, Provider]) -> None:
    not_found(models(providers=providers), "gpt-4o")


def test_an_ambiguous_name_is_refused_with_its_candidates() -> None:
    error = not_found(models(providers={"openai": LOCAL, "eu": OPENAI}), "gpt-4o")
    assert "openai/gpt-4o or eu/gpt-4o" in error.message


@pytest.mark.parametrize("name", ["", "/", "nothing", "nobody/m", "openai/", "openai", "/gpt-4o"])
def test_names_of_nothing_are_not_found(name: str) -> None:
    assert repr(name) in not_found(models(), name).message


def test_configured_models_are_listed_before_the_others() -> None:
    there = models(
        [Model(name="z", provider="openai"), Model(name="a", provider="openai")],
        learnt={"ollama": ["qwen3", "llama3"], "gone": ["x"], "sandbox": ["y"]},
    )
    assert [model.name for model in there.list()] == [
        "z",
        "a",
        "ollama/llama3",
        "ollama/qwen3",
        "sandbox/echo",
    ]
    assert there.resolve("ollama/qwen3").upstream == "qwen3"
    assert there.get("ollama/qwen3") in there.list()


def test_a_list_that_was_given_out_is_the_callers_own() -> None:
    there = models()
    there.list().clear()
    assert there.list()


def test_a_model_is_described_by_what_is_known_of_it() -> None:
    there = models([Model(name="fast", provider="openai", upstream="gpt-4o-mini")])
    fast = there.get("fast")
    assert (fast.name, fast.display_name, fast.provider) == ("fast", "GPT-4o mini", "openai")
    assert (fast.context_window, fast.max_output_tokens) == (128_000, 16_384)
    assert list(fast.inputs) == [IMAGE, DOCUMENT]
    assert (fast.tools, fast.thinking, fast.structured_output) == (True, False, True)
    assert fast.HasField("thinking")


def test_an_unlisted_model_has_no_unknown_facts() -> None:
    model = models().get("ollama/llama3")
    assert (model.name, model.display_name) == ("ollama/llama3", "ollama/llama3")
    assert (model.context_window, model.max_output_tokens, list(model.inputs)) == (0, 0, [])
    for field in ("tools", "thinking", "structured_output"):
        assert not model.HasField(field)
    assert models().get("claude-haiku-4-5").display_name == "Claude Haiku 4.5"
    assert models().get("sandbox/fail-401").display_name == "Sandbox, failing"


def test_a_too_long_name_is_neither_found_nor_cached() -> None:
    assert len(not_found(models(), "openai/" + "x" * 1_000_000).message) < 300
    assert models().resolve("openai/" + "x" * 249).upstream == "x" * 249


def test_offered_are_configured_and_learnt_models_alone() -> None:
    there = models(
        [Model(name="fast", provider="openai", upstream="gpt-4o")], learnt={"ollama": ["llama3"]}
    )
    assert there.offers("openai", "gpt-4o")
    assert there.offers("ollama", "llama3")
    assert there.offers("sandbox", "echo")
    assert not there.offers("openai", "gpt-4")


def test_a_wildcard_maps_every_name_that_begins_so() -> None:
    there = models([Model(name="claude-*", provider="ollama", fallbacks=["sandbox/echo"])])
    target = there.resolve("claude-sonnet-4-5")
    assert (target.name, target.provider, target.upstream) == (
        "claude-sonnet-4-5",
        "ollama",
        "claude-sonnet-4-5",
    )
    assert target.fallbacks == ("sandbox/echo",)
    assert there.get("claude-next").name == "claude-next"


def test_a_wildcard_may_stand_for_one_model_of_another_provider() -> None:
    there = models([Model(name="claude-*", provider="openai", upstream="gpt-4o", inputs=["text"])])
    target = there.resolve("claude-opus-4-5")
    assert (target.name, target.provider, target.upstream) == (
        "claude-opus-4-5",
        "openai",
        "gpt-4o",
    )
    assert (target.inputs, target.max_output_tokens) == (frozenset(), 16_384)
    assert there.offers("openai", "gpt-4o")


def test_the_most_specific_of_names_and_wildcards_counts() -> None:
    there = models(
        [
            Model(name="*", provider="ollama", upstream="any"),
            Model(name="claude-*", provider="ollama", upstream="claude"),
            Model(name="claude-haiku-*", provider="ollama", upstream="haiku"),
            Model(name="claude-haiku-4-5", provider="ollama", upstream="exact"),
        ]
    )
    resolved = {
        name: there.resolve(name).upstream
        for name in ("claude-haiku-4-5", "claude-haiku-3", "claude-opus-4", "gpt-4o", "claude")
    }
    assert resolved == {
        "claude-haiku-4-5": "exact",
        "claude-haiku-3": "haiku",
        "claude-opus-4": "claude",
        "gpt-4o": "any",
        "claude": "any",
    }


def test_a_provider_prefix_wins_over_a_wildcard() -> None:
    everything = Model(name="*", provider="ollama", upstream="any")
    there = models([everything], learnt={"openai": ["gpt-5"]})
    assert there.resolve("openai/gpt-4o").provider == "openai"
    assert there.resolve("openai/gpt-5").provider == "openai"
    assert there.resolve("sandbox/echo").upstream == "echo"
    assert there.resolve("elsewhere/gpt-4o").upstream == "any"

    named = Model(name="openai/gpt-*", provider="ollama", upstream="mine")
    there = models([everything, named], learnt={"openai": ["gpt-5"]})
    assert there.resolve("openai/gpt-4o").upstream == "mine"
    assert there.resolve("openai/gpt-5").upstream == "mine"
    assert there.resolve("openai/o3").provider == "openai"


def test_wildcards_are_no_models_to_list_or_to_ask_for() -> None:
    there = models([Model(name="claude-*", provider="ollama")], {"ollama": LOCAL})
    assert "claude-*" not in [model.name for model in there.list()]
    not_found(there, "claude-*")
    not_found(there, "gpt-4o")


def test_settings_override_server_and_family_facts() -> None:
    there = models(
        [
            Model(name="o3", provider="openai"),
            Model(
                name="mine",
                provider="openai",
                upstream="o3",
                refuses=["seed"],
                thinking=False,
                efforts=["low"],
                thinking_off={"think": False},
            ),
        ]
    )
    target = there.resolve("o3")
    assert {"temperature", "max_tokens"} <= target.refuses
    assert (target.thinks, target.efforts) == (True, ("low", "medium", "high"))
    mine = there.resolve("mine")
    assert (mine.refuses, mine.thinks, mine.efforts) == ({"seed"}, False, ("low",))
    assert mine.thinking_off == {"think": False}
    assert (there.get("o3").thinking, there.get("mine").thinking) == (True, False)


def test_a_servers_own_switch_counts_before_that_of_a_family() -> None:
    assert models().resolve("ollama/qwen3:8b").thinking_off == {"reasoning_effort": "none"}
    vllm = {"vllm": Provider(kind="openai", base_url="http://10.0.0.5:8000/v1")}
    off = models(providers=vllm).resolve("vllm/Qwen/Qwen3-8B").thinking_off
    assert off == {"chat_template_kwargs": {"enable_thinking": False}}


def test_unknown_models_have_the_size_their_server_lists() -> None:
    provider = Provider(kind="openai", base_url="https://api.groq.com/openai/v1")
    models = Models([], {"groq": provider}, {}, {})
    assert models.resolve("groq/openai/gpt-oss-120b").context_window == 131_072
    assert models.resolve("groq/unheard-of").context_window == 0
