"""Validation of file names."""

import unicodedata

from services.common.errors import invalid

MAX_LENGTH = 255


def clean_filename(written: str) -> str:
    """Return the name of a file that a caller wrote, without the folders before it.

    Any Unicode is taken, right-to-left marks too. Whoever shows the name decides how.

    Raises:
        GatewayError: invalid_request, when it holds control characters, nothing but
            folders, or more than 255 characters.
    """
    if any(unicodedata.category(character) == "Cc" for character in written):
        raise invalid("file", "file: the filename takes no control characters")
    name = written.replace("\\", "/").rpartition("/")[2].strip()
    if name in ("", ".", ".."):
        raise invalid("file", "file: the filename takes at least one character beside folders")
    if len(name) > MAX_LENGTH:
        raise invalid("file", f"file: the filename takes at most {MAX_LENGTH} characters")
    return name
