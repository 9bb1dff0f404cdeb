import base64
import binascii
import html
import json
import random
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from services.inference.providers.redaction import MAX_MESSAGE, redact, secrets_of
from tests.grid import each_row

KEY = "sk-Pr0j-9aZ_x7Qw3Er5Ty-8Ui1Op2As4Df6Gh"


def test_of_our_own_headers_what_may_be_a_key_is_secret() -> None:
    found = secrets_of(
        {
            "Authorization": "Bearer sk-abc123",
            "x-api-key": "k1234567",
            "x": "on",
            "anthropic-version": "2023-06-01",
        }
    )
    assert set(found) == {"Bearer sk-abc123", "sk-abc123", "k1234567"}


def test_a_key_cut_by_the_length_limit_is_redacted() -> None:
    assert "sk-own" not in redact("x" * 1995 + " sk-own-key-1", ("sk-own-key-1",))


def _percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


DISGUISES: dict[str, Callable[[str], str]] = {
    "percent": quote,
    "all in percent": _percent,
    "percent twice": lambda key: quote(_percent(key)),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of the header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base64 of two things": lambda key: base64.b64encode(f"u:{key}".encode()).decode(),
    "base64url without padding": lambda key: (
        base64.urlsafe_b64encode(f"?{key}\xff".encode()).decode().rstrip("=")
    ),
    "base64 in lines": lambda key: (
        binascii.b2a_base64(key.encode()).decode()[:20]
        + "\n"
        + binascii.b2a_base64(key.encode()).decode()[20:]
    ),
    "base64 twice": lambda key: base64.b64encode(base64.b64encode(key.encode())).decode(),
    "hex": lambda key: key.encode().hex(),
    "hex with colons": lambda key: key.encode().hex(":").upper(),
    "escapes of JSON": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "JSON in JSON": lambda key: json.dumps("".join(f"\\u{ord(letter):04x}" for letter in key)),
    "escapes of C": lambda key: "".join(f"\\x{ord(letter):02X}" for letter in key),
    "entities": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "escaped for HTML": lambda key: html.escape(f"<{key}>"),
    "upper case": str.upper,
    "lower case": str.lower,
    "with blanks": " ".join,
    "with zero-width blanks": "\u200b".join,
    "in lines": lambda key: "\n".join(key[at : at + 5] for at in range(0, len(key), 5)),
    "other hyphens": lambda key: key.replace("-", "\u2011"),
    "backwards": lambda key: key[::-1],
    "its beginning": lambda key: key[:24],
    "its end": lambda key: key[-20:],
}


@each_row("disguise", DISGUISES.values())
def test_a_disguised_key_does_not_go_out(disguise: Callable[[str], str]) -> None:
    hidden = disguise(KEY)
    words = redact(f"Incorrect key provided: {hidden}. See the page.", (f"Bearer {KEY}", KEY))
    assert hidden not in words
    assert KEY[4:12].lower() not in words.lower()


def test_words_without_a_key_go_out_as_they_are() -> None:
    words = (
        "messages[3].content: text exceeds 100% of the \\u00e9-limit (YWJjZGVmZ2hpamtsbW5v) &amp;"
    )
    assert redact(words, (f"Bearer {KEY}", KEY, "ollama", "upstream-key")) == words


@given(st.text(max_size=5000))
def test_any_words_are_redacted_within_bounds(words: str) -> None:
    assert len(redact(words, (KEY,))) <= MAX_MESSAGE


@given(st.integers(0, 2**32), st.sampled_from(sorted(DISGUISES)))
def test_any_key_is_known_in_any_disguise(seed: int, disguise: str) -> None:
    letters = random.Random(seed).choices(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=40
    )
    key = "gw-" + "".join(letters)
    hidden = DISGUISES[disguise](key)
    assert hidden not in redact(f"key={hidden}", (key,))
