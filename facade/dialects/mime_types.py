"""MIME types as callers send them."""

import re

_MIME_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}", re.ASCII)


def mime_type(written: str) -> str:
    """Return the type of a Content-Type header without its parameters, or ""."""
    essence = written.partition(";")[0].strip().lower()
    return essence if _MIME_TYPE.fullmatch(essence) else ""
