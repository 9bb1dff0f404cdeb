"""The form of the gateway's API keys."""

import re

_KEY = re.compile(r"gw-[A-Za-z0-9_-]{43}", re.ASCII)


def is_key(text: str) -> bool:
    """Return whether `text` has the form of an API key."""
    return _KEY.fullmatch(text) is not None
