"""Rendering of background responses, which runs in the service that generates them.

The facade writes what the rendering needs to know of a request (`presentation`), and passes it to
the service together with the request. See `services.responses.rendering.Renderer`.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import orjson

from facade.dialects.foreign_parts import foreign_parts_of_events
from facade.dialects.paths import CallerPaths
from facade.dialects.responses import Echo, ResponseStream, failed_response, load_paths
from facade.dialects.stored_responses.content import is_appended, response_content
from facade.dialects.stored_responses.replay import pack_events
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from gateway.inference.v1.inference_pb2 import Event, RouteInfo
from gateway.memory.v1.responses_pb2 import ResponseContent
from services.common.errors import GatewayError
from services.common.text.texts import MAX_NAME

# Paths that a response object has room for.
_MOST_PATHS = 1_000


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

    What was dropped or converted is not known yet when the headers of its response are sent. The
    response object therefore has it, in a member `gateway` that clients ignore.

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
        self._requested = self._echo
        self._dropped = dict.fromkeys(self._paths.source_map.dropped)
        self._adapted: dict[str, None] = {}

    @property
    def is_appended(self) -> bool:
        """Whether the items of the response object belong in its conversation."""
        return is_appended(self.response)

    def begin(self) -> bytes:
        """Queue the response, and return its first events."""
        return self.queue(self._model)

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        batch = [*events]
        for event in batch:
            if event.HasField("start"):
                self._add_changes(event.start.route)
            elif event.HasField("continued"):
                self._add_changes(event.continued)
        _add(self._dropped, foreign_parts_of_events(batch, DIALECT_RESPONSES))
        return super().encode(batch)

    def finish(self) -> bytes:
        """Return the end of a complete response."""
        self._set_changes()
        return super().finish()

    def _add_changes(self, route: RouteInfo) -> None:
        _add(self._dropped, self._paths.dropped(route.dropped))
        _add(self._adapted, self._paths.adapted(route.adapted))
        self._set_changes()

    def _set_changes(self) -> None:
        """Set what the response object says of changes."""
        changes = {"dropped": [*self._dropped], "adapted": [*self._adapted]}
        if present := {name: paths for name, paths in changes.items() if paths}:
            self._echo = self._requested.with_member("gateway", present)

    def error(self, error: GatewayError) -> bytes:
        """Return the end of an interrupted response, with the field paths of its caller."""
        self._set_changes()
        return super().error(self._paths.translate(error))

    def content(self, events: bytes = b"") -> ResponseContent:
        """Return the content to store of the response object, with all its events."""
        return response_content(self.response, pack_events(events) if events else b"")

    def failed_body(self, error: GatewayError) -> bytes:
        """Return the body to store of the response, had it failed without output."""
        failed = failed_response(error, self._id, self._created, self._echo, self._model)
        return response_content(failed).body


def _add(names: dict[str, None], added: Iterable[str]) -> None:
    """Add names, cut to their maximum length, as many as there is room for."""
    room = max(0, _MOST_PATHS - len(names))
    names |= dict.fromkeys(name[:MAX_NAME] for name in islice(added, room))
