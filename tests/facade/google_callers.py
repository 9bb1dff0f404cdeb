"""Requests of Google's dialect to a gateway."""

from typing import Any

import orjson

from tests.gateway_in_process import Gateway

Json = dict[str, Any]


async def ask(
    gateway: Gateway, model: str, body: Json, method: str = "generateContent", **headers: str
) -> tuple[int, Any, Any]:
    """Return the status, the headers and the answer, of a stream as its chunks."""
    url = f"{gateway.url}/v1beta/models/{model}:{method}"
    key = {"x-goog-api-key": gateway.key}
    async with gateway.http.post(url, json=body, headers=headers or key) as answer:
        text = await answer.read()
        if answer.content_type == "text/event-stream":
            lines = [line for line in text.split(b"\r\n") if line]
            assert all(line.startswith(b"data: ") for line in lines), text
            return answer.status, answer.headers, [orjson.loads(line[6:]) for line in lines]
        return answer.status, answer.headers, orjson.loads(text)


async def sent_to(gateway: Gateway, dialect: str) -> Json:
    """Return the body of the latest request to an API of the sandbox."""
    async with gateway.http.get(f"{gateway.upstream}/sandbox/log") as answer:
        entries = await answer.json()
    # Lists of models, which the gateway asks for by itself, have no body.
    bodies = [one["body"] for one in entries if one["dialect"] == dialect]
    body: Json = [one for one in bodies if one is not None][-1]
    return body


def says(*parts: Json, role: str = "user") -> Json:
    """Return a content."""
    return {"role": role, "parts": [*parts]}
