"""Bodies of requests and responses for the request log: their texts, without framing. Pure."""

from collections.abc import Iterator
from typing import Any

import orjson

# Characters of the texts of a body that are searched: the end of a request, where its newest
# message is, and the beginning of an answer.
_MAX_TEXT = 8_000
_HEAD_END = b"\r\n\r\n"
_DATA = b"data: "
# Fields whose values are no text that a person searches for.
_NOT_TEXT = frozenset(
    {
        *("id", "type", "role", "object", "model", "data", "url", "image_url", "file_data"),
        *(
            "signature",
            "thoughtSignature",
            "encrypted_content",
            "call_id",
            "tool_call_id",
            "tool_use_id",
            "status",
        ),
    }
)


def render_bodies(request: bytes, response: bytes) -> tuple[str, str, str]:
    """Return the request's body, the response's body, and what is searched of both.

    Args:
        request: the body of the request, perhaps truncated.
        response: the body of the response; that of a stream with head and chunks, as written to
            the connection.
    """
    content = _unframed(response) if response.startswith(b"HTTP/1.1 ") else response
    searched = f"{_text_of(request)[-_MAX_TEXT:]}\n{_answer_text(content)[:_MAX_TEXT]}"
    return request.decode(errors="replace"), content.decode(errors="replace"), searched


def _unframed(response: bytes) -> bytes:
    """Return the content of a response with a head, chunked or not; its end may be missing."""
    head, _, content = response.partition(_HEAD_END)
    if b"\r\nTransfer-Encoding: chunked\r\n" not in head + b"\r\n":
        return content
    pieces = []
    position = 0
    while (end := content.find(b"\r\n", position)) >= 0:
        size = int(content[position:end] or b"0", 16)
        if not size:
            break
        pieces.append(content[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
    return b"".join(pieces)


def _answer_text(content: bytes) -> str:
    if not content.startswith((_DATA, b"event: ", b":")):
        return _text_of(content)
    lines = content.split(b"\n")
    return "".join(
        part
        for line in lines
        if line.startswith(_DATA)
        for part in _delta_texts(_parsed(line[len(_DATA) :]))
    )


def _delta_texts(event: Any) -> Iterator[str]:
    """Yield the texts of an event of a stream, of any dialect."""
    if not isinstance(event, dict):
        return
    delta = event.get("delta")
    if isinstance(delta, dict) and isinstance(delta.get("text"), str):
        yield delta["text"]
    elif isinstance(delta, str) and event.get("type") == "response.output_text.delta":
        yield delta
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict) and isinstance(delta.get("content"), str):
            yield delta["content"]


def _text_of(body: bytes) -> str:
    """Return the texts in a JSON body; the body itself if it is not complete."""
    parsed = _parsed(body)
    if parsed is None:
        return body.decode(errors="replace")
    texts = []
    waiting = [parsed]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, dict):
            waiting += [value[name] for name in reversed(value) if name not in _NOT_TEXT]
    return "\n".join(texts)


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
