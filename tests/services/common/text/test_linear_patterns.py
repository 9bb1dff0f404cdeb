"""Regular expressions of operators: those that take linear time are accepted."""

import pytest

from services.common.text.linear_patterns import compile_linear


@pytest.mark.parametrize(
    "pattern",
    [
        "secret",
        "sk-[A-Za-z0-9]+",
        "[0-9]{3}-[0-9]{2}-[0-9]{4}",
        "(?i:password|passwort): [^ ]*",
        r"\b[0-9]{13,19}\b",
        r"[\w.]{1,64}+@[\w.]+",
        "(?:[0-9]{4}[ -]?){3}[0-9]{4}",
    ],
)
def test_linear_expressions_compile(pattern: str) -> None:
    assert compile_linear(pattern).pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a+)+", "at its very end"),
        ("a*b", "at its very end"),
        ("a*+b", "at its very end"),
        ("(ab)+", "at its very end"),
        ("a{1,100}a{1,100}b", "steps"),
        ("(a|aa){1,50}b", "steps"),
        ("(a?){30}b", "steps"),
        (r"(a)\1", "refer to groups"),
        ("a*", "empty"),
        ("(", "no regular expression"),
        ("a" * 501, "500 characters"),
        ("(?=a*)b", "at its very end"),
    ],
)
def test_slow_expressions_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_linear(pattern)
