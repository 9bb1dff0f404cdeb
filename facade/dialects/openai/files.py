"""Files in OpenAI's format (Format A), and its pagination."""

from collections.abc import Mapping
from typing import Any

import orjson

from facade.dialects.purposes import NAMES, parse_purpose
from facade.dialects.queries import parse_cursor, parse_limit
from gateway.files.v1.files_pb2 import File, ListFilesRequest, ListFilesResponse
from services.common.errors import invalid

MAX_LIMIT = 10_000
# Query parameters by the service's names of cursors.
CURSORS = {"after_id": "after"}


def parse_file_list(query: Mapping[str, str]) -> ListFilesRequest:
    """Parse the query of a list.

    It may have `after`, `limit` (1 to 10,000; 10,000 when absent), `order` (newest first when
    absent) and `purpose`.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", "order: must be asc or desc")
    list_request = ListFilesRequest(
        limit=parse_limit(query, default=MAX_LIMIT, largest=MAX_LIMIT),
        ascending=order == "asc",
        after_id=parse_cursor(query, "after") or "",
    )
    if "purpose" in query:
        list_request.purpose = parse_purpose(query["purpose"])
    return list_request


def render_file(file: File) -> bytes:
    """Return the JSON of a file."""
    return orjson.dumps(file_object(file))


def render_file_list(page: ListFilesResponse) -> bytes:
    """Return the JSON of a page of files."""
    files = page.files
    return orjson.dumps(
        {
            "object": "list",
            "data": [file_object(file) for file in files],
            "first_id": files[0].id if files else None,
            "last_id": files[-1].id if files else None,
            "has_more": page.has_more,
        }
    )


def render_deleted_file(file_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a file."""
    return orjson.dumps({"object": "file", "id": file_id, "deleted": True})


def file_object(file: File) -> dict[str, Any]:
    """Return a file as an object of JSON."""
    return {
        "object": "file",
        "id": file.id,
        "bytes": file.size_bytes,
        "created_at": file.created_at,
        "expires_at": file.expires_at,
        "filename": file.filename,
        "purpose": NAMES[file.purpose],
        # OpenAI's clients poll it until a file is ready; files are ready at once.
        "status": "processed",
    }
