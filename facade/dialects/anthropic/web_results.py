"""Translate results of gateway tools to and from Anthropic's blocks.

Anthropic's clients treat the `encrypted_content` of search results as opaque and send it back. Here
it is the compressed text, unsigned: callers may put any text into tool results, so forging it gains
nothing. It stays readable after a change of keys, and by every gateway.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2 as pb
from services.common.errors import GatewayError, invalid

SEARCH_RESULT = "web_search_tool_result"
FETCH_RESULT = "web_fetch_tool_result"

_PREFIX = "gwt1."
_MAX_TEXT = 1 << 20  # maximum decompressed size in bytes
_TOOLS = {SEARCH_RESULT: "web_search", FETCH_RESULT: "web_fetch"}


def result_json(result: pb.ServerToolResult) -> dict[str, Any]:
    """Return the JSON block of a result."""
    is_fetch = result.name == "web_fetch"
    content: object
    match result.WhichOneof("kind"):
        case "search":
            content = [_finding(one) for one in result.search.results]
        case "page":
            content = _page(result.page)
        case _:
            kind = FETCH_RESULT if is_fetch else SEARCH_RESULT
            content = {"type": f"{kind}_error", "error_code": result.error_code or "unavailable"}
    return {
        "type": FETCH_RESULT if is_fetch else SEARCH_RESULT,
        "tool_use_id": result.tool_use_id,
        "content": content,
    }


def citation_json(citation: pb.Citation) -> dict[str, Any]:
    """Return the JSON of a citation of a text."""
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title or None,
        "encrypted_index": _PREFIX,
        "cited_text": citation.quote,
    }


def without_own_citations(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a text block that the caller sent back, without citations that the gateway wrote.

    A provider could not use them, as it would not recognize their index.
    """
    citations = block.get("citations")
    if not isinstance(citations, list):
        return block
    kept = [
        one
        for one in citations
        if not (isinstance(one, dict) and one.get("encrypted_index") == _PREFIX)
    ]
    if len(kept) == len(citations):
        return block
    others = {name: value for name, value in block.items() if name != "citations"}
    return {**others, "citations": kept} if kept else others


def set_result(target: pb.ServerToolResult, block: Mapping[str, Any], path: str) -> None:
    """Parse a result that the caller sent back.

    Raises:
        GatewayError: invalid, naming the field that differs from what the gateway writes.
    """
    target.tool_use_id = block["tool_use_id"]
    target.name = _TOOLS[block["type"]]
    content, path = block.get("content"), f"{path}.content"
    match content:
        case list() if target.name == "web_search":
            target.search.SetInParent()
            for index, one in enumerate(content):
                _set_finding(target.search.results.add(), one, f"{path}[{index}]")
        case {"error_code": str(code)}:
            target.error_code = code
        case {"type": "web_fetch_result"} if target.name == "web_fetch":
            _set_page(target.page, content, path)
        case _:
            raise _not_ours(path)


def _finding(result: pb.SearchResult) -> dict[str, Any]:
    return {
        "type": "web_search_result",
        "url": result.url,
        "title": result.title,
        "encrypted_content": _packed(result.text),
        "page_age": result.age or None,
    }


def _set_finding(target: pb.SearchResult, finding: object, path: str) -> None:
    match finding:
        case {"url": str(url), "title": str(title), "encrypted_content": str(packed)}:
            target.url, target.title = url, title
            target.text = _unpacked(packed, f"{path}.encrypted_content")
        case _:
            raise _not_ours(path)
    age = finding.get("page_age") if isinstance(finding, dict) else None
    if isinstance(age, str):
        target.age = age


def _page(page: pb.WebPage) -> dict[str, Any]:
    return {
        "type": "web_fetch_result",
        "url": page.url,
        "content": {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": page.text},
            "title": page.title or None,
            "citations": {"enabled": False},
        },
        "retrieved_at": page.retrieved_at or None,
    }


def _set_page(target: pb.WebPage, page: Any, path: str) -> None:
    match page:
        case {"url": str(url), "content": {"source": {"data": str(text)}} as document}:
            target.url, target.text = url, text
        case _:
            raise _not_ours(path)
    if isinstance(title := document.get("title"), str):
        target.title = title
    if isinstance(at := page.get("retrieved_at"), str):
        target.retrieved_at = at


def _packed(text: str) -> str:
    return _PREFIX + base64.b64encode(zlib.compress(text.encode())).decode()


def _unpacked(packed: str, path: str) -> str:
    if not packed.startswith(_PREFIX):
        raise _not_ours(path)
    unpacking = zlib.decompressobj()
    try:
        data = binascii.a2b_base64(packed.removeprefix(_PREFIX), strict_mode=True)
        text = unpacking.decompress(data, _MAX_TEXT)
        if not unpacking.eof:
            raise _not_ours(path)
        return text.decode()
    except (ValueError, zlib.error):
        raise _not_ours(path) from None


def _not_ours(path: str) -> GatewayError:
    return invalid(path, f"{path}: must be sent back unchanged, as the gateway returned it")
