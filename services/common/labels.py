"""Labels of requests: tags, and the end user of the caller.

Callers send them as headers or in fields of the body; the facade passes them on as metadata of gRPC
calls, in the format of the headers. A tag has a key of `usage.tags`. A label is a name and a value:
the key of a tag and its value, or `END_USER` and the end user.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, unquote

from services.common.errors import invalid

TAGS_KEY: Final = "x-gateway-tags"
END_USER_KEY: Final = "x-gateway-end-user"
# The name of the label with an end user; no tag has this key.
END_USER: Final = "end_user"
# The value that replaces further ones, once a label has had too many.
OTHER: Final = "(other)"
MAX_VALUE: Final = 64
_TAG_KEY: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}", re.ASCII)
# Maximum characters of a header.
_MAX_HEADER: Final = 2_048
_HASH: Final = 8
# Between the id of a user and the hash of an end user.
_OWNED: Final = "/"

# The labels of a request, by their names in alphabetical order.
Labels = tuple[tuple[str, str], ...]

# The labels of the current task's request.
request_labels: ContextVar[Labels] = ContextVar("request_labels", default=())


def parse_tags(text: str) -> dict[str, str]:
    """Parse a header `project=alpha, team=search`; values are percent-encoded.

    Raises:
        GatewayError: invalid_request.
    """
    tags = {}
    for part in text.split(","):
        key, separator, value = part.partition("=")
        key, value = key.strip(), _decoded(TAGS_KEY, value.strip())
        if not (separator and key and value) or len(text) > _MAX_HEADER:
            raise invalid(
                TAGS_KEY,
                f"{TAGS_KEY}: must be at most {_MAX_HEADER:,} characters in the format "
                "project=alpha, team=search, with percent-encoded values",
            )
        tags[key] = value
    return tags


def write_tags(tags: Mapping[str, str]) -> str:
    """Return tags in the format of the header."""
    return ",".join(f"{key}={quote(value)}" for key, value in tags.items())


def parse_end_user(text: str) -> str:
    """Parse a header with a percent-encoded end user.

    Raises:
        GatewayError: invalid_request.
    """
    if not text or len(text) > _MAX_HEADER:
        raise invalid(END_USER_KEY, f"{END_USER_KEY}: must be 1 to {_MAX_HEADER:,} characters")
    return _decoded(END_USER_KEY, text)


def labels_in(
    metadata: Iterable[tuple[str, str | bytes]], tags: Collection[str], *, has_end_users: bool
) -> dict[str, str]:
    """Return the labels in the metadata of a call, with bounded values.

    Args:
        metadata: the metadata.
        tags: the keys of the tags that are read.
        has_end_users: whether end users are read.

    Raises:
        GatewayError: invalid_request, naming the key of the metadata.
    """
    labels: dict[str, str] = {}
    for key, value in metadata:
        if key == TAGS_KEY and tags:
            sent = parse_tags(str(value))
            labels |= {name: bounded_value(sent[name]) for name in sent if name in tags}
        elif key == END_USER_KEY and has_end_users:
            labels[END_USER] = bounded_value(parse_end_user(str(value)))
    return labels


def parse_tag(text: str) -> tuple[str, str]:
    """Parse a tag `project=alpha`, by which requests or usage are selected.

    Raises:
        GatewayError: invalid_request.
    """
    key, separator, value = text.partition("=")
    if not (separator and key and value):
        raise invalid("tag", "tag: must be a key and a value, such as project=alpha")
    return key, value


def write_end_user(end_user: str) -> str:
    """Return an end user in the format of the header."""
    return quote(end_user)


def bounded_value(value: str) -> str:
    """Return a value as it is stored: of a long one its beginning and a hash, and printable."""
    printable = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in value)
    if len(printable) <= MAX_VALUE:
        return printable
    digest = blake2b(value.encode(errors="replace"), digest_size=_HASH).hexdigest()
    return f"{printable[: MAX_VALUE - 1 - len(digest)]}~{digest}"


def is_tag_key(text: str) -> bool:
    """Return whether a text may be the key of a tag, as the settings check it."""
    return _TAG_KEY.fullmatch(text) is not None and text != END_USER


def tag_subject(key: str, value: str) -> str:
    """Return the id of a tag as a subject of limits."""
    return bounded_value(f"{key}={value}")


def end_user_subject(user_id: str, end_user: str) -> str:
    """Return the id of an end user of a user as a subject of limits."""
    digest = blake2b(bounded_value(end_user).encode(), digest_size=16)
    return f"{user_id}{_OWNED}{digest.hexdigest()}"


def end_user_prefix(user_id: str) -> str:
    """Return the beginning of the ids of all end users of a user as subjects of limits."""
    return f"{user_id}{_OWNED}"


def owner_of_end_user(subject_id: str) -> str:
    """Return the user of an end user as a subject of limits."""
    return subject_id.partition(_OWNED)[0]


def _decoded(header: str, value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise invalid(header, f"{header}: must be percent-encoded UTF-8") from None
