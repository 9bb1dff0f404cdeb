"""The form of the gateway's API keys, and what is wrong with texts that do not have it."""

import re
from typing import Final

_KEY = re.compile(r"gw-[A-Za-z0-9_-]{43}", re.ASCII)
KEY_LENGTH: Final = 46
ADMIN_KEY: Final = re.compile(r"gwadmin-[A-Za-z0-9_-]{43}", re.ASCII)
SESSION_PREFIX: Final = "gwsession-"
_TOKEN_OF_ISSUER = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_MAX_TOKEN = 8192
_CREATE = "`gateway keys create --user NAME` creates one"
# Whose keys begin so; the first match counts.
_FOREIGN = (
    ("sk-ant-", "Anthropic"),
    ("sk-or-", "OpenRouter"),
    ("sk-", "OpenAI or another provider"),
    ("AIza", "Google"),
    ("gsk_", "Groq"),
    ("xai-", "xAI"),
    ("csk-", "Cerebras"),
    ("fw_", "Fireworks"),
    ("pplx-", "Perplexity"),
    ("hf_", "Hugging Face"),
)
_BEGINNINGS = ("gw-", "gwadmin-", *(beginning for beginning, _ in _FOREIGN))
_SHORTEST_FOREIGN = 12
_RANDOM_LENGTH = 20
_DIGIT = re.compile("[0-9]")
# Texts of examples in place of a key, in lower case and without separators.
_PLACEHOLDER = re.compile(
    r"(?:your|my)?(?:gateway|api|secret)*(?:key|token)(?:here)?|k|x{3,}|\.+|…", re.ASCII
)
_QUOTATION_MARKS = "\"'`\u2018\u2019\u201c\u201d"
_SEPARATORS = re.compile("[-_ ]+")


def is_key(text: str) -> bool:
    """Return whether `text` has the form of an API key."""
    return _KEY.fullmatch(text) is not None


def is_issuer_token(text: str) -> bool:
    """Return whether `text` has the form of a signed JWT (RFC 7515, section 7.1)."""
    return (
        text.startswith("eyJ")
        and len(text) <= _MAX_TOKEN
        and _TOKEN_OF_ISSUER.fullmatch(text) is not None
    )


def looks_like_key(text: str) -> bool:
    """Return whether `text` looks like the key of a gateway or of a provider."""
    if text.startswith(_BEGINNINGS):
        return len(text) >= _SHORTEST_FOREIGN
    # No name of a variable, which has underscores or is short, looks so.
    return len(text) >= _RANDOM_LENGTH and "_" not in text and _DIGIT.search(text) is not None


def malformed(text: str) -> str:
    """Return what is wrong with a text that is not an API key, and the next step.

    The message repeats nothing of the text, which may be a secret.
    """
    if not text.strip():
        return f"the API key is empty; set it to a key of this gateway ({_CREATE})"
    if is_key(text.strip(_QUOTATION_MARKS)):
        return "the API key is in quotation marks; send it without them"
    if is_key("".join(text.split())):
        return "the API key contains a space or a line break; send its 46 characters alone"
    if text[:7].lower() == "bearer ":
        return "the API key begins with `Bearer`; send the key alone in this place"
    if ADMIN_KEY.fullmatch(text):
        return (
            f"this is an admin key, which is valid for /admin/v1 only; send an API key ({_CREATE})"
        )
    if text.startswith("gw-"):
        length = len(text)
        if length < KEY_LENGTH:
            return f"the API key looks truncated: it has {length} of {KEY_LENGTH} characters"
        if length > KEY_LENGTH:
            return f"the API key is too long: it has {length} instead of {KEY_LENGTH} characters"
        return "the API key has a character that no key has; copy it again"
    if text[0] in "<{[$%" or _PLACEHOLDER.fullmatch(_SEPARATORS.sub("", text.lower())):
        return (
            "the API key is a placeholder, or a variable that was not replaced; send a key of this "
            f"gateway ({_CREATE})"
        )
    for beginning, provider in _FOREIGN:
        if text.startswith(beginning):
            return (
                f"this looks like a key of {provider}, not of this gateway; keys of this gateway "
                f"begin with gw- ({_CREATE}), and those of providers belong in its settings"
            )
    return f"this is not a key of this gateway; those begin with gw- ({_CREATE})"
