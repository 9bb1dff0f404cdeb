"""Redaction of logged bodies."""

import pytest

from services.request_log.redaction import Redactor


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("a gw-" + "k" * 43 + " b", "a [redacted] b"),
        ('{"key": "sk-ant-' + "k" * 40 + '"}', '{"key": "[redacted]"}'),
        ("AIza" + "k" * 35, "[redacted]"),
        ("AKIA" + "K" * 16, "[redacted]"),
        ("ghp_" + "k" * 36, "[redacted]"),
        ("eyJ" + "k" * 20 + ".eyJ" + "p" * 20 + ".sig_-", "[redacted]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("https://me:secret@host/x", "https://[redacted]@host/x"),
        (
            "https://host/x?a=1&api_key=abc&b=2#f",
            "https://host/x?a=1&api_key=[redacted]&b=2#f",
        ),
        ("?X-Amz-Signature=abc", "?X-Amz-Signature=[redacted]"),
        (
            r"-----BEGIN RSA PRIVATE KEY-----\nAbc+/=\n-----END RSA PRIVATE KEY-----",
            r"[redacted]-----END RSA PRIVATE KEY-----",
        ),
        ("the sk-8 road, 10:30@noon, a?b=c", "the sk-8 road, 10:30@noon, a?b=c"),
        ("card 1234-5678", "card [redacted]"),
    ],
)
def test_secrets_are_replaced(text: str, redacted: str) -> None:
    assert Redactor(["[0-9]{4}-[0-9]{4}"]).redacted(text) == redacted
