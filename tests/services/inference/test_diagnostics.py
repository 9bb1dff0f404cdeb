from services.common.settings import Settings
from services.inference.diagnostics import problems, warnings


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
