"""The output items of a response, shared by whole and streamed answers."""

import binascii
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from facade.dialects.google_code import Output, Program, read_part
from facade.dialects.openai.file_search import FILE_SEARCH
from facade.dialects.responses.items import OWN_FILE_SEARCH, OWN_SEARCH, REDACTED
from facade.dialects.responses.unknown_fields import native_fields
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Citation,
    Media,
    ServerToolResult,
    ToolUse,
)

Json = dict[str, Any]

COMPLETED = "completed"
IN_PROGRESS = "in_progress"
INCOMPLETE = "incomplete"
FAILED = "failed"
# Kinds of blocks that are one item: a program that Google has run, and its output.
PROGRAM, PROGRAM_OUTPUT = "program", "program_output"
# Kinds of blocks that belong to the item of an earlier block.
RESULTS = ("server_tool_result", PROGRAM_OUTPUT)

_RESPONSE = "resp_"
_FETCH = "web_fetch"


def item_id(prefix: str, response_id: str, index: int) -> str:
    """Return the id of an output item, which is unique if the id of its response is."""
    return f"{prefix}_{response_id.removeprefix(_RESPONSE)}{index:04x}"


def search_id(response_id: str, index: int, name: str) -> str:
    """Return the id of a search by the gateway's tool `name`; see `item_id`."""
    prefix = OWN_FILE_SEARCH if name == FILE_SEARCH else OWN_SEARCH
    return f"{prefix}{response_id.removeprefix(_RESPONSE)}{index:04x}"


def message(own: Mapping[str, Any], given_id: str, status: str, content: list[Any]) -> Json:
    """Return a message; `own` are its unknown fields."""
    return {
        **own,
        "id": given_id,
        "type": "message",
        "status": status,
        "content": content,
        "role": "assistant",
    }


def annotation(citation: Citation) -> Json:
    """Return a citation of a text."""
    if citation.file_id:
        return {
            "type": "file_citation",
            "index": citation.start_index,
            "file_id": citation.file_id,
            "filename": citation.title,
        }
    return {
        "type": "url_citation",
        "start_index": citation.start_index,
        "end_index": citation.end_index,
        "url": citation.url,
        "title": citation.title,
    }


def text_part(own: Mapping[str, Any], text: str, logprobs: list[Any]) -> Json:
    """Return a text; `own` are its annotations and unknown fields."""
    return {"annotations": [], **own, "type": "output_text", "logprobs": logprobs, "text": text}


def refusal_part(refusal: str) -> Json:
    """Return a refusal."""
    return {"type": "refusal", "refusal": refusal}


def reasoning(own: Mapping[str, Any], given_id: str, text: str, proof: str) -> Json:
    """Return a reasoning item; `proof` is the signature, sent as `encrypted_content`."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: Json = {"summary": summary, **own, "id": given_id, "type": "reasoning"}
    if not item.get("encrypted_content"):
        item["encrypted_content"] = proof or None
    return item


def redacted(given_id: str, data: str) -> Json:
    """Return a reasoning item with thinking that only its provider can read."""
    return reasoning({}, given_id, "", REDACTED + data)


def call(own: Mapping[str, Any], given_id: str, status: str, use: ToolUse, written: str) -> Json:
    """Return a tool call with its arguments, or without them while it is open."""
    kind, field = ("custom_tool_call", "input") if use.freeform else ("function_call", "arguments")
    return {
        **own,
        "id": given_id,
        "type": kind,
        "status": status,
        field: written,
        "call_id": use.id,
        "name": use.name,
    }


def whole_arguments(use: ToolUse, written: str) -> str:
    """Return the arguments of a call; clients parse them, so they must be at least an object."""
    return written if written or use.freeform else "{}"


def search(
    given_id: str,
    status: str,
    name: str,
    arguments: str,
    result: ServerToolResult | None = None,
    *,
    sources: bool = False,
    results: bool = False,
) -> Json:
    """Return a call of one of the gateway's own tools: a search, or an opened page.

    Args:
        given_id: id of the call.
        status: status of the call.
        name: name of the tool.
        arguments: JSON as the model wrote it.
        result: the result, once known.
        sources: whether the found pages are listed.
        results: whether the results of a search of files are listed.
    """
    fields = _object(arguments)
    if name == FILE_SEARCH:
        return _file_search(given_id, status, fields, result if results else None)
    if name == _FETCH:
        url = result.page.url if result is not None else ""
        action: Json = {"type": "open_page", "url": url or fields.get("url")}
    else:
        query = fields.get("query")
        query = query if isinstance(query, str) else ""
        action = {"type": "search", "query": query, "queries": [query] if query else []}
        if sources and result is not None:
            action["sources"] = [{"type": "url", "url": one.url} for one in result.search.results]
    return {"id": given_id, "type": "web_search_call", "status": status, "action": action}


def _file_search(given_id: str, status: str, fields: Json, result: ServerToolResult | None) -> Json:
    queries = fields.get("queries", fields.get("query"))
    queries = [queries] if isinstance(queries, str) else queries
    passages = None
    if result is not None:
        passages = [
            {
                "file_id": passage.file_id,
                "filename": passage.filename,
                "score": passage.score,
                "attributes": orjson.loads(passage.attributes or b"{}"),
                "text": passage.text,
            }
            for passage in result.files.results
        ]
    return {
        "id": given_id,
        "type": "file_search_call",
        "status": status,
        "queries": queries if isinstance(queries, list) else [],
        "results": passages,
    }


def search_status(result: ServerToolResult) -> str:
    """Return the status of a call with this result."""
    return FAILED if result.WhichOneof("kind") == "error_code" else COMPLETED


def picture(given_id: str, media: Media) -> Json:
    """Return an image that the model generated."""
    data = binascii.b2a_base64(media.data, newline=False).decode("ascii")
    return {"id": given_id, "type": "image_generation_call", "status": COMPLETED, "result": data}


def kind_of(block: Block) -> str:
    """Return the kind of a block, or "" if this dialect does not show it."""
    kind = block.WhichOneof("kind") or ""
    match kind:
        case "media":
            is_shown = block.media.kind == conversation.MEDIA_KIND_IMAGE and bool(block.media.data)
        case "opaque":
            if (part := read_part(block.opaque)) is not None:
                return PROGRAM if isinstance(part, Program) else PROGRAM_OUTPUT
            is_shown = block.opaque.dialect == conversation.DIALECT_RESPONSES
        case "tool_result":
            is_shown = False
        case _:
            is_shown = True
    return kind if is_shown else ""


def outputs_of(blocks: Iterable[Block]) -> dict[str, Output]:
    """Return the outputs of programs that Google has run, by the keys of the programs."""
    parts = (read_part(block.opaque) for block in blocks if block.HasField("opaque"))
    return {part.key: part for part in parts if isinstance(part, Output)}


def program_status(result: Output | None) -> str:
    """Return the status of a program with this output."""
    return COMPLETED if result is not None and not result.has_failed else FAILED


def opaque_item(block: Block, given_id: str) -> Json:
    """Return an item without a canonical name."""
    return {"id": given_id, **native_fields(block.opaque)}


def logprobs_of(json: bytes) -> list[Json]:
    """Return the log probabilities of a text in the format of this dialect."""
    if not json:
        return []
    return [
        {**_logprob(one), "top_logprobs": [_logprob(top) for top in one.get("top_logprobs") or ()]}
        for one in orjson.loads(json).get("content") or ()
    ]


def _logprob(logprob: Mapping[str, Any]) -> Json:
    return {
        "token": logprob.get("token", ""),
        "logprob": logprob.get("logprob", 0.0),
        "bytes": logprob.get("bytes") or [],
    }


def _object(json: str) -> Json:
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
