"""Files in Google's format, and its pages of lists."""

import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from facade.dialects.gemini.file_names import file_id_of, file_name
from facade.dialects.queries import parse_limit
from gateway.files.v1.files_pb2 import File, ListFilesRequest, ListFilesResponse
from services.common.errors import invalid

Json = dict[str, Any]

_SIZE, _TOKEN = "pageSize", "pageToken"
_DEFAULT_SIZE, _MOST = 10, 100
# Query parameters by the service's names of cursors.
GOOGLE_CURSORS: Final = {"after_id": _TOKEN}


def parse_file_list(query: Mapping[str, str]) -> ListFilesRequest:
    """Parse the query of a list: `pageSize` (1 to 100; 10 when absent) and `pageToken`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    after = ""
    if token := query.get(_TOKEN):
        after = file_id_of(token)
        if not after:
            raise invalid(_TOKEN, f"{_TOKEN}: must be the nextPageToken of a page")
    size = parse_limit(query, default=_DEFAULT_SIZE, largest=_MOST, name=_SIZE)
    return ListFilesRequest(limit=size, after_id=after)


def file_id_in_path(name: str) -> str:
    """Return the id of a file that a path names; other names unchanged."""
    return file_id_of(name) or name


def render_file(file: File, address: str) -> bytes:
    """Return the JSON of a file; `address` is that of the gateway."""
    return orjson.dumps(_file(file, address))


def render_file_list(page: ListFilesResponse, address: str) -> bytes:
    """Return the JSON of a page of files; `address` is that of the gateway."""
    body: Json = {"files": [_file(file, address) for file in page.files]}
    if page.has_more and page.files:
        body["nextPageToken"] = file_name(page.files[-1].id)
    return orjson.dumps(body)


def render_created_file(file: File, address: str) -> bytes:
    """Return the JSON of a file that has been uploaded; `address` is that of the gateway."""
    return orjson.dumps({"file": _file(file, address)})


def render_deleted_file() -> bytes:
    """Return the JSON that confirms the deletion of a file."""
    return b"{}"


def _file(file: File, address: str) -> Json:
    name = file_name(file.id)
    return {
        "name": name,
        "displayName": file.filename,
        "mimeType": file.mime_type,
        "sizeBytes": str(file.size_bytes),
        "createTime": _time(file.created_at),
        "updateTime": _time(file.created_at),
        "expirationTime": _time(file.expires_at),
        # Google's is the base64 of the hexadecimal digits.
        "sha256Hash": binascii.b2a_base64(file.sha256.encode(), newline=False).decode(),
        "uri": f"{address}/v1beta/{name}",
        "state": "ACTIVE",
        "source": "UPLOADED",
    }


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
