"""Which servers are taken for the makers of what they speak."""

import pytest

from services.common.settings import Provider
from services.inference.providers.registry import is_official


@pytest.mark.parametrize(
    ("kind", "url", "official"),
    [
        ("openai", "https://api.openai.com/v1", True),
        ("openai", "https://eu.api.openai.com/v1", True),
        ("openai", "https://generativelanguage.googleapis.com/v1beta/openai", False),
        ("anthropic", "https://api.anthropic.com", True),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", True),
        ("gemini", "https://proxy.test/v1beta", False),
    ],
)
def test_the_maker_of_a_dialect(kind: str, url: str, official: bool) -> None:
    settings = Provider.model_validate({"kind": kind, "base_url": url})
    assert is_official(settings) is official
