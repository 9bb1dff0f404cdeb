"""Names of files in Google's dialect: `files/…`, and addresses that end with them. Pure.

Google's clients accept lower-case letters and digits only, so that a name has the ULID of a file's
id in lower case.
"""

import re
from typing import Final

_ID: Final = "file-"
_PREFIX: Final = "files/"
_NAME = re.compile(
    r"(?:https?://[^/?#]{1,255}/v1beta/)?(?:files/)?([0-9a-hjkmnp-tv-z]{26})", re.ASCII
)


def file_name(file_id: str) -> str:
    """Return the name of a file of the gateway's store."""
    return _PREFIX + file_id.removeprefix(_ID).lower()


def file_id_of(name: str) -> str:
    """Return the id for a name or an address of a file; "" for any other address."""
    match = _NAME.fullmatch(name)
    return _ID + match[1].upper() if match else ""
