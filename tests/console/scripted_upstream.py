"""A provider of OpenAI's dialect whose streams go on when a test says so."""

import asyncio
import json
from typing import Any

from aiohttp import web

# A PNG of one pixel.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgAAACAAAB4iG8MwAAAABJRU5ErkJggg=="
HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"


class ScriptedUpstream:
    """Answers by the name of the model that is asked.

    * `held` says "The first part", and the rest once `may_end` is set.
    * `sections` writes a paragraph and the beginning of a code, and the rest once `may_end` is set.
    * `painter` makes an image.
    * `researcher` searches the web, and cites what `tests.e2e.searxng` finds.
    * `rewriter` says the text that it is asked about with oceans in place of seas.
    * `broken` says "A beginning", and is gone.
    * `hostile` thinks, says and calls HTML with scripts.
    * any other says "Understood."

    Attributes:
        app: the application to serve.
        bodies: what it was sent.
        may_end: lets the held answers end.
        has_left: set when a caller left before the end.
    """

    def __init__(self) -> None:
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self._answer)
        self.bodies: list[dict[str, Any]] = []
        self.may_end = asyncio.Event()
        self.has_left = asyncio.Event()

    def reset(self) -> None:
        """Hold the answers to come; those that are held now go on."""
        self.may_end.set()
        self.may_end, self.has_left = asyncio.Event(), asyncio.Event()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        may_end, has_left = self.may_end, self.has_left
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            match body["model"]:
                case "held":
                    await _say(response, content="The first part")
                    await may_end.wait()
                    await _say(response, content=" and the rest.")
                case "sections":
                    await _say(response, content="A paragraph.\n\n```python\ndef f():\n")
                    await may_end.wait()
                    await _say(response, content="    return 1\n```\n\nThe end.")
                case "painter":
                    image = {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{DOT}"},
                    }
                    await _chunk(response, {"content": "A dot.", "images": [image]}, None)
                case "researcher" if body["messages"][-1]["role"] != "tool":
                    await _call(response, "web_search", json.dumps({"query": "tides"}))
                case "researcher":
                    await _say(response, content="See [Typst](https://typst.app/docs/).")
                case "rewriter":
                    asked = body["messages"][-1]["content"]
                    text = asked.partition("<text>\n")[2].partition("\n</text>")[0]
                    await _say(response, content=text.replace("sea", "ocean"))
                case "broken":
                    await _say(response, content="A beginning")
                    return response
                case "hostile":
                    await _say(response, reasoning_content=HOSTILE)
                    await _say(response, content=f"{HOSTILE} [a](javascript:window.hacked=1)")
                    await _call(response, HOSTILE, json.dumps({"a": HOSTILE}))
                case _:
                    await _say(response, content="Understood.")
        except asyncio.CancelledError:
            has_left.set()
            raise
        await _chunk(response, {}, "stop")
        await response.write(b"data: [DONE]\n\n")
        return response


async def _say(response: web.StreamResponse, **delta: str) -> None:
    await _chunk(response, delta, None)


async def _call(response: web.StreamResponse, name: str, arguments: str) -> None:
    function = {"name": name, "arguments": arguments}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    await _chunk(response, {"tool_calls": [call]}, None)


async def _chunk(response: web.StreamResponse, delta: dict[str, Any], finish: str | None) -> None:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
