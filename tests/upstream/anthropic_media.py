"""Anthropic's rule that an image is what its media type says.

Source: the error message, as reported by users of the API.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from tests.upstream.checks import Problem

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
# Base64 of the longest beginning.
_READ = 16


def image_problems(where: tuple[str | int, ...], block: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem if a block is an image of another type than it says."""
    source = block.get("source") if block["type"] == "image" else None
    if not source or source["type"] != "base64":
        return
    declared = source["media_type"]
    try:
        content = base64.b64decode(source["data"][:_READ], validate=True)
    except binascii.Error:
        yield Problem((*where, "image", "source", "base64", "data"), "invalid base64 data")
        return
    for beginning, actual in _BEGINNINGS.items():
        if content.startswith(beginning) and actual != declared:
            yield Problem(
                (*where, "image", "source", "base64"),
                f"The image was specified using the {declared} media type, but the image appears "
                f"to be a {actual} image",
            )
