"""Validation of file names."""

import unicodedata

from services.common.errors import invalid

MAX_LENGTH = 255


def clean_filename(sent_name: str, param: str = "file") -> str:
    """Return a caller's file name without its folders.

    All Unicode except control characters is accepted, including right-to-left marks; how to
    display the name is left to the client. Errors name the field `param`.

    Raises:
        GatewayError: invalid_request, when it contains control characters, nothing but
            folders, or more than 255 characters.
    """
    if any(unicodedata.category(character) == "Cc" for character in sent_name):
        raise invalid(param, f"{param}: the filename must not contain control characters")
    name = sent_name.replace("\\", "/").rpartition("/")[2].strip()
    if name in ("", ".", ".."):
        raise invalid(
            param, f"{param}: the filename must have at least one character after the folders"
        )
    if len(name) > MAX_LENGTH:
        raise invalid(param, f"{param}: the filename must have at most {MAX_LENGTH} characters")
    return name
