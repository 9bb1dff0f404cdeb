"""Parts common to the two endpoints of JSON."""

import base64
import json
from typing import Any

import orjson
from aiohttp import ClientResponse

Json = dict[str, Any]


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_url(data: bytes, mime_type: str) -> str:
    return f"data:{mime_type};base64,{base64_of(data)}"


def arguments_of(text: str) -> str:
    """Return the arguments of a call in one spelling; what is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(text or "{}"), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return text


def dropped_of(response: ClientResponse) -> list[str]:
    """Return what an answer's headers say was dropped."""
    header = response.headers.get("x-gateway-dropped", "")
    return header.split(", ") if header else []


def events_of(data: bytes) -> list[Json]:
    """Return the JSON of the server-sent events of a whole stream."""
    return [
        orjson.loads(line.removeprefix(b"data: "))
        for line in data.split(b"\n")
        if line.startswith(b"data: {")
    ]
