"""HTTP downloads of files: headers, conditions and ranges.

Conditions and ranges follow RFC 9110 (sections 8.8.3, 13.1, 14), the two forms of the file name
RFC 6266. A file never changes, so its hash is a strong entity tag.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote

from gateway.files.v1.files_pb2 import File, ReadFileRequest

_RANGE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII | re.IGNORECASE)
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"|\*')
# Unescaped characters of RFC 8187, beside letters and digits.
_ATTRIBUTE = "!#$&+-.^_`|~"
# An offset beyond the end of any file.
_BEHIND_ALL = (1 << 63) - 1


def headers(file: File) -> dict[str, str]:
    """Return the headers of every response with the content of a file."""
    return {
        "Content-Type": file.mime_type,
        "Content-Disposition": disposition(file.filename),
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        "ETag": etag(file),
    }


def etag(file: File) -> str:
    """Return the strong entity tag of a file."""
    return f'"{file.sha256}"'


def disposition(filename: str) -> str:
    """Return the Content-Disposition that saves a file under its name."""
    plain = "".join(
        character if " " <= character <= "~" and character not in '"\\%' else "_"
        for character in filename
    )
    if plain == filename:
        return f'attachment; filename="{plain}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, _ATTRIBUTE)}"


def is_unchanged(request: Mapping[str, str], file: File) -> bool:
    """Return whether the caller's copy is current, by If-None-Match; names are in lower case."""
    return not {"*", etag(file)}.isdisjoint(known_tags(request))


def known_tags(request: Mapping[str, str]) -> list[str]:
    """Return the entity tags of If-None-Match, in their quotes, or `*`."""
    tags = _TAG.findall(request.get("if-none-match", ""))
    return [tag.removeprefix("W/") for tag in tags]


def may_be_partial(request: Mapping[str, str], file: File) -> bool:
    """Return whether a range applies to this version of the file, by If-Range."""
    return request.get("if-range", etag(file)) == etag(file)


def read_request(file_id: str, byte_range: str) -> ReadFileRequest:
    """Return the RPC request for a Range header, for the whole file if it is "".

    Multiple ranges, other units and malformed ranges request the whole file too.
    """
    call = ReadFileRequest(id=file_id)
    match = _RANGE.fullmatch(byte_range)
    if match is None or not (match[1] or match[2]):
        return call
    if not match[1]:
        if int(match[2]):
            call.suffix = int(match[2])
        else:
            # An empty suffix range is valid but never satisfiable.
            call.first = _BEHIND_ALL
        return call
    if match[2] and int(match[2]) < int(match[1]):
        return call
    call.first = int(match[1])
    if match[2]:
        call.last = int(match[2])
    return call


def is_range(call: ReadFileRequest) -> bool:
    """Return whether a call reads less than the whole file."""
    return call.HasField("first") or call.HasField("suffix")
