from typing import Any

import pytest

from services.common.settings import Settings
from services.inference.diagnostics import notes, problems, warnings


def test_a_search_backend_without_its_key_is_a_problem() -> None:
    settings = Settings.model_validate({"tools": {"web_search": {"backend": "tavily"}}})
    (problem,) = problems(settings, {})
    assert problem.startswith("tools.web_search.api_key_env: the variable TAVILY_API_KEY is not")
    assert problems(settings, {"TAVILY_API_KEY": "x"}) == []
    named = {"tools": {"web_search": {"backend": "tavily", "api_key_env": "MINE"}}}
    assert "MINE" in problems(Settings.model_validate(named), {"TAVILY_API_KEY": "x"})[0]


def test_searxng_and_no_backend_need_no_key() -> None:
    searxng = {"tools": {"web_search": {"backend": "searxng", "url": "http://127.0.0.1:8888"}}}
    assert problems(Settings.model_validate(searxng), {}) == []
    assert problems(Settings(), {}) == []


def test_state_kept_at_one_of_several_deployments_is_told() -> None:
    providers = {
        "s": {"kind": "sandbox", "pass_stateful": True},
        "t": {"kind": "sandbox"},
    }
    models = [
        {"name": "a", "deployments": [{"provider": "t"}, {"provider": "s"}]},
        {"name": "b", "deployments": [{"provider": "s"}]},
        {"name": "c", "provider": "s"},
    ]
    (warning,) = warnings(Settings.model_validate({"models": models, "providers": providers}), {})
    assert warning.startswith("models.a.deployments[1]: the provider 's' has pass_stateful")


def test_a_fallback_of_another_vector_space_is_told() -> None:
    models = [
        {
            "name": "a",
            "provider": "s",
            "vector_space": "x",
            "fallbacks": ["b", "c", "s/embed"],
        },
        {"name": "b", "provider": "s", "vector_space": "x", "fallbacks": ["a"]},
        {"name": "c", "provider": "s", "vector_space": "y"},
        {"name": "d", "provider": "s", "fallbacks": ["a"]},
    ]
    providers = {"s": {"kind": "sandbox"}}
    lines = warnings(Settings.model_validate({"models": models, "providers": providers}), {})
    assert [one.partition(": ")[0] for one in lines] == [
        "models.a.fallbacks[1]",
        "models.a.fallbacks[2]",
    ]
    assert "'c' is skipped for embeddings" in lines[0]


def with_fallbacks(**fallbacks: list[str]) -> Settings:
    return Settings.model_validate(
        {
            "models": [
                {"name": name, "provider": "sandbox", "upstream": "echo", "fallbacks": following}
                for name, following in fallbacks.items()
            ]
        }
    )


@pytest.mark.parametrize(
    ("fallbacks", "expected"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, []),
        ({"a": ["a"]}, []),
        ({"a": ["b"], "b": ["a"]}, ["models.a.fallbacks: a circle (a -> b -> a)"]),
        (
            {"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]},
            ["models.a.fallbacks: a circle (a -> b -> c -> a)"],
        ),
    ],
)
def test_fallbacks_in_a_circle_are_told(
    fallbacks: dict[str, list[str]], expected: list[str]
) -> None:
    settings = with_fallbacks(**fallbacks)
    # Two models that replace each other are usual: no warning at every start.
    assert warnings(settings, {}) == (
        ["models.a.fallbacks: a model cannot be its own fallback"]
        if fallbacks == {"a": ["a"]}
        else []
    )
    told = notes(settings)
    assert len(told) == len(expected)
    assert all(one.startswith(words) for one, words in zip(told, expected, strict=True))


def test_a_long_circle_is_found_quickly() -> None:
    names = [f"m{number}" for number in range(300)]
    settings = with_fallbacks(**{name: names for name in names})
    assert len(warnings(settings, {})) == 300  # each is its own fallback
    assert len(notes(settings)) == 299  # and one of the pair with each later one


def provider(kind: str, base_url: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "base_url": base_url, **fields}


def test_a_model_that_cannot_do_its_role_is_told() -> None:
    settings = Settings.model_validate(
        {
            "providers": {"p": provider("anthropic", "http://127.0.0.1:1")},
            "models": [{"name": "m", "provider": "p", "inputs": ["text", "pdf"]}],
            "roles": {"describe_image": "m", "transcribe_audio": "m"},
        }
    )
    assert [one.partition(":")[0] for one in warnings(settings, {})] == [
        "roles.describe_image",
        "roles.transcribe_audio",
    ]
    none = Settings.model_validate({"roles": {"summarise": "nothing"}})
    assert problems(none, {})[0].startswith("roles.summarise: unknown model 'nothing'")


def test_a_provider_that_no_model_uses_is_noted() -> None:
    sections = {name: provider("openai", "http://127.0.0.1:1") for name in ("used", "unused")}
    settings = Settings.model_validate(
        {"providers": sections, "models": [{"name": "m", "provider": "used"}]}
    )
    assert notes(settings) == [
        "providers.unused: no [[models]] uses it; its models have the names unused/…"
    ]
    # Without any [[models]] all models have such names, as intended.
    assert notes(Settings.model_validate({"providers": sections})) == []


def test_the_address_of_an_endpoint_is_told() -> None:
    url = "https://user:secret@api.openai.com/v1/chat/completions"
    settings = Settings.model_validate({"providers": {"a": provider("openai", url)}})
    assert warnings(settings, {}) == [
        "providers.a.base_url: ends in the path of an endpoint; use https://api.openai.com/v1"
    ]


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        (
            "GATEWAY_DATADIR",
            "GATEWAY_DATADIR: unknown variable, which has no effect; did you mean ",
        ),
        ("GATEWAY_PROT", "did you mean GATEWAY_PORT?"),
        ("GATEWAY_SOMETHING_ELSE", "unknown variable, which has no effect"),
        ("GATEWAY_PORT", ""),
        ("GATEWAY_CONFIG", ""),
        ("GATEWAY_KEY", ""),
        ("GATEWAY_UPSTREAM_KEY", ""),
        ("GATEWAY_SERVICE_HOST", ""),
        ("GATEWAY_PORT_8080_TCP_ADDR", ""),
        ("OTHER", ""),
    ],
)
def test_an_unknown_variable_of_the_gateway_is_told(variable: str, words: str) -> None:
    section = provider("openai", "http://127.0.0.1:1", api_key_env="GATEWAY_UPSTREAM_KEY")
    settings = Settings.model_validate({"providers": {"a": section}})
    told = warnings(settings, {variable: "x"})
    assert len(told) == (1 if words else 0)
    assert words in "".join(told)
