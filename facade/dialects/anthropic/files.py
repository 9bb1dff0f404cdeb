"""Files in Anthropic's format (Format B), and its two kinds of pagination.

Callers page with `after_id` and `before_id`. Anthropic's own clients, since the files endpoints
left beta, follow `next_page`, a token equivalent to `after_id`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson
from multidict import MultiMapping

from facade.dialects.queries import parse_cursor, parse_limit
from gateway.files.v1.files_pb2 import File, ListFilesRequest, ListFilesResponse
from services.common.errors import invalid

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000
MAX_IDS = 100
_PAGE = "page_"
# How Anthropic's clients write lists.
_IDS = "ids[]"
_PAGING = ("limit", "page", "after_id", "before_id")
_SCOPE = "scope_id"


def parse_file_list(query: MultiMapping[str], *, pages: bool) -> ListFilesRequest:
    """Parse the query of a list: `limit` (1 to 1000; 20 when absent), `after_id` or `before_id`.

    With `pages` it may have `page`, a token from an earlier list, in place of either. It may have
    `ids[]` in place of all of them.

    Raises:
        GatewayError: invalid, naming the parameter.
    """
    if ids := dict.fromkeys(query.getall(_IDS, ())):
        for name in _PAGING:
            if name in query:
                raise invalid(name, f"{name}: must not be given together with ids")
        if len(ids) > MAX_IDS:
            raise invalid("ids", f"ids: must be at most {MAX_IDS} ids of files")
        return ListFilesRequest(limit=MAX_IDS, ids=ids)
    after = parse_cursor(query, "after_id")
    before = parse_cursor(query, "before_id")
    page = query.get("page") if pages else None
    if before is not None and after is not None:
        raise invalid("before_id", "before_id: must not be given together with after_id")
    if page is not None:
        if before is not None or after is not None:
            raise invalid("page", "page: must not be given together with after_id or before_id")
        after = page.removeprefix(_PAGE)
        if not after or after == page or not after.isascii():
            raise invalid("page", "page: must be the next_page of a previous page")
    return ListFilesRequest(
        limit=parse_limit(query, default=DEFAULT_LIMIT, largest=MAX_LIMIT),
        after_id=after or "",
        before_id=before or "",
    )


def names_scope(query: Mapping[str, str]) -> bool:
    """Return whether a list is one of the files of a scope, such as a session; none has a scope."""
    return bool(query.get(_SCOPE))


def render_file(file: File) -> bytes:
    """Return the JSON of a file."""
    return orjson.dumps(_file(file))


def render_file_list(page: ListFilesResponse, *, pages: bool) -> bytes:
    """Return the JSON of a page of files; with `pages` also the token of the next one, or null."""
    files = page.files
    written: dict[str, object] = {
        "data": [_file(file) for file in files],
        "first_id": files[0].id if files else None,
        "last_id": files[-1].id if files else None,
        "has_more": page.has_more,
    }
    if pages:
        written["next_page"] = f"{_PAGE}{files[-1].id}" if page.has_more and files else None
    return orjson.dumps(written)


def render_deleted_file(file_id: str) -> bytes:
    """Return the JSON that confirms the deletion of a file."""
    return orjson.dumps({"id": file_id, "type": "file_deleted"})


def _file(file: File) -> dict[str, object]:
    return {
        "id": file.id,
        "type": "file",
        "filename": file.filename,
        "created_at": _time(file.created_at),
        "mime_type": file.mime_type,
        "size_bytes": file.size_bytes,
        "downloadable": True,
        # Without it, Anthropic's clients report that a file never expires.
        "expires_at": _time(file.expires_at),
    }


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
