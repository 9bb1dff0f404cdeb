"""Rendering of background responses, which runs in the service that generates them.

The facade writes what the rendering needs to know of a request (`presentation`), and passes it to
the service together with the request. See `services.responses.rendering.Renderer`.
"""

from collections.abc import Callable
from typing import Any

import orjson

from facade.dialects.paths import CallerPaths
from facade.dialects.responses import Echo, ResponseStream, failed_response, load_paths
from facade.dialects.stored_responses.content import is_appended, response_content
from facade.dialects.stored_responses.replay import pack_events
from gateway.memory.v1.responses_pb2 import ResponseContent
from services.common.errors import GatewayError


def presentation(model: str, created: int, echo: Echo, paths: CallerPaths) -> bytes:
    """Return what the rendering of a response needs, as JSON.

    Args:
        model: the model's name in the request.
        created: Unix seconds.
        echo: the echoed fields of the request.
        paths: translate field paths of the canonical request.
    """
    needed = {"model": model, "created": created, "echo": echo.dump(), "paths": paths.dump()}
    return orjson.dumps(needed)


class BackgroundRenderer(ResponseStream):
    """Renders one background response and its events.

    Args:
        response_id: the gateway's id.
        presented: what `presentation` returned.
        now: returns Unix seconds.
    """

    def __init__(self, response_id: str, presented: bytes, now: Callable[[], float]) -> None:
        needed: dict[str, Any] = orjson.loads(presented)
        self._model: str = needed["model"]
        self._paths = load_paths(needed["paths"])
        super().__init__(response_id, needed["created"], Echo.load(needed["echo"]), now)

    @property
    def is_appended(self) -> bool:
        """Whether the items of the response object belong in its conversation."""
        return is_appended(self.response)

    def begin(self) -> bytes:
        """Queue the response, and return its first events."""
        return self.queue(self._model)

    def error(self, error: GatewayError) -> bytes:
        """Return the end of an interrupted response, with the field paths of its caller."""
        return super().error(self._paths.translate(error))

    def content(self, events: bytes = b"") -> ResponseContent:
        """Return the content to store of the response object, with all its events."""
        return response_content(self.response, pack_events(events) if events else b"")

    def failed_body(self, error: GatewayError) -> bytes:
        """Return the body to store of the response, had it failed without output."""
        failed = failed_response(error, self._id, self._created, self._echo, self._model)
        return response_content(failed).body
