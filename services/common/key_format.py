"""The form of the gateway's API keys."""

_PREFIX = "gw-"
_LENGTH = len(_PREFIX) + 43


def is_key(text: str) -> bool:
    """Return whether `text` has the form of an API key."""
    # Called for every call; a regular expression takes several times as long.
    if len(text) != _LENGTH or not text.startswith(_PREFIX):
        return False
    characters = text[len(_PREFIX) :].replace("-", "0").replace("_", "0")
    return characters.isascii() and characters.isalnum()
