import pytest

from services.common.errors import GatewayError
from services.inference.tools.domains import domain_of, permits
from tests.grid import each_row


@each_row(
    ("url", "rule", "is_in"),
    [
        ("https://example.com/", "example.com", True),
        ("https://docs.example.com/a", "example.com", True),
        ("https://EXAMPLE.com./a", "Example.COM", True),
        ("https://badexample.com/", "example.com", False),
        ("https://example.com.evil.net/", "example.com", False),
        ("https://evil.net/example.com", "example.com", False),
        ("https://example.com@evil.net/", "example.com", False),
        ("https://example.com/", "docs.example.com", False),
        ("https://example.com/", "https://example.com", True),
        ("https://a.example.com/", "*.example.com", True),
        ("https://example.com/blog", "example.com/blog", True),
        ("https://example.com/blog/post", "example.com/blog", True),
        ("https://example.com/blogs", "example.com/blog", False),
        ("https://example.com/blog/post", "example.com/blog/", True),
        ("https://example.com/en/articles/1", "example.com/*/articles", True),
        ("https://example.com/articles", "example.com/*/articles", False),
        ("https://example.com/any", "example.com/*", True),
        ("https://bücher.example/", "bücher.example", True),
        ("https://xn--bcher-kva.example/", "bücher.example", True),
        ("https://example.com:8443/", "example.com", True),
        ("http://[broken", "example.com", False),
        ("mailto:x@example.com", "example.com", False),
    ],
)
def test_a_domain_holds_its_subdomains_and_a_path_what_is_below(
    url: str, rule: str, is_in: bool
) -> None:
    assert permits(url, [domain_of(rule)], []) is is_in


def test_a_blocked_domain_counts_before_an_allowed_one() -> None:
    allowed, blocked = [domain_of("example.com")], [domain_of("ads.example.com")]
    assert permits("https://example.com/", allowed, blocked)
    assert not permits("https://ads.example.com/", allowed, blocked)
    assert permits("https://other.net/", [], blocked)


@each_row(
    "rule",
    [
        "",
        "com",
        "a b.com",
        "https://",
        "example.com:80",
        "u@example.com",
        "a.*.com",
        "*",
        "x." * 300 + "example",
    ],
)
def test_what_is_no_domain_is_refused(rule: str) -> None:
    with pytest.raises(GatewayError, match="is not a domain"):
        domain_of(rule)


def test_many_stars_take_no_more_time() -> None:
    rule = domain_of("example.com/" + "*a" * 200 + "*b")
    assert not permits("https://example.com/" + "a" * 8_000, [rule], [])
