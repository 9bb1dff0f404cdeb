"""Redaction of secrets in logged bodies: keys, passwords in URLs, and what operators name. Pure."""

import re
from collections.abc import Sequence

from services.common.text.linear_patterns import compile_linear

REDACTED = "[redacted]"

# Patterns of secrets, and what replaces them.
_SECRETS: Sequence[tuple[re.Pattern[str], str]] = (
    # Keys of this gateway and of providers: OpenAI, Anthropic, Groq, xAI, Stripe, …
    (re.compile(r"\b(?:gw|gwadmin|sk|pk|rk|gsk|xai|hf)[-_][A-Za-z0-9_-]{16,}+"), REDACTED),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}+"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}"), REDACTED),
    (re.compile(r"\b(?:gh[oprsu]|github_pat|glpat)[-_][A-Za-z0-9_]{16,}+"), REDACTED),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{16,}+(?:\.[A-Za-z0-9_-]++){0,2}+"), REDACTED),
    (re.compile(r"\b((?i:bearer) )[A-Za-z0-9._~+/=-]{8,}+"), rf"\1{REDACTED}"),
    (re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*+"), REDACTED),
    # Passwords and signatures in URLs.
    (re.compile(r"://[^\s/@\"\\:]{0,64}+:[^\s/@\"\\:]{1,256}+@"), f"://{REDACTED}@"),
    (
        re.compile(
            r"([?&](?i:[a-z_-]{0,20}(?:key|token|secret|password|signature|credential)|sig)=)"
            r"[^\s&\"\\#]++"
        ),
        rf"\1{REDACTED}",
    ),
)


class Redactor:
    """Replaces secrets in texts.

    Args:
        patterns: further regular expressions, which `compile_linear` accepts.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._secrets = (*_SECRETS, *((compile_linear(one), REDACTED) for one in patterns))

    def redacted(self, text: str) -> str:
        """Return a text with its secrets replaced."""
        for pattern, replacement in self._secrets:
            text = pattern.sub(replacement, text)
        return text
