"""Base URLs that were probably meant."""

from services.inference.facts.base_urls import alternatives, without_endpoint
from tests.grid import each_row


@each_row(
    ("kind", "base_url", "expected"),
    [
        ("openai", "http://h:1", ["http://h:1/v1"]),
        ("openai", "http://h:1/v1/v1", ["http://h:1/v1"]),
        ("openai", "http://h:1/v1/chat/completions", ["http://h:1/v1"]),
        ("openai", "http://h:1/chat/completions/", ["http://h:1", "http://h:1/v1"]),
        ("openai", "http://h:1/v1/", []),
        ("openai", "http://h:1/x/v1", ["http://h:1/v1"]),
        (
            "openai",
            "https://api.groq.com",
            ["https://api.groq.com/openai/v1", "https://api.groq.com/v1"],
        ),
        ("anthropic", "https://api.anthropic.com/v1", ["https://api.anthropic.com"]),
        ("anthropic", "https://api.anthropic.com/v1/messages", ["https://api.anthropic.com"]),
        ("anthropic", "https://api.anthropic.com", []),
        (
            "gemini",
            "https://generativelanguage.googleapis.com",
            ["https://generativelanguage.googleapis.com/v1beta"],
        ),
        ("gemini", "http://h/v1beta/models/g:generateContent", ["http://h/v1beta"]),
    ],
)
def test_usual_mistakes_have_alternatives(kind: str, base_url: str, expected: list[str]) -> None:
    assert alternatives(kind, base_url) == expected


@each_row(
    ("kind", "base_url", "expected"),
    [
        ("openai", "http://h/v1/chat/completions", "http://h/v1"),
        ("openai", "http://h/v1/responses/", "http://h/v1"),
        ("anthropic", "http://h/v1/messages", "http://h"),
        ("openai", "http://h/v1", ""),
        ("openai", "http://models.example/v1", ""),
    ],
)
def test_an_endpoint_at_the_end_is_cut_off(kind: str, base_url: str, expected: str) -> None:
    assert without_endpoint(kind, base_url) == expected
