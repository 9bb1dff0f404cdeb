"""Base class of the readers of OpenAI's responses."""

from functools import partial

from gateway.inference.v1.inference_pb2 import Event
from services.common.ids import IdGenerator
from services.inference.providers import failures
from services.inference.providers.base import Call
from services.inference.providers.bounds import Bounds, name_of
from services.inference.providers.delta_templates import DeltaTemplates
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai_responses.event_types import DONE, extract_delta
from services.inference.providers.protocols import ErrorFactory


class EventReader:
    """Base of the parsers of one stream.

    Args:
        call: the call.
        errors: creates errors from the provider's error objects.
        new_id: generates the id of an answer if the provider omits it.

    Attributes:
        ended: whether the end event has been received.
        has_content: whether any content has been received.
    """

    def __init__(self, call: Call, errors: ErrorFactory, new_id: IdGenerator) -> None:
        self.ended = self.has_content = False
        self._call = call
        self._errors = errors
        self._broken = partial(failures.broken_answer, errors.name)
        self._new_id = new_id
        self._bounds = Bounds(errors.name, errors.limits)
        self._started = False
        self._templates = DeltaTemplates(extract_delta, "obfuscation", "sequence_number")

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, which the end event reports."""
        return self.ended

    def end(self, out: list[Event]) -> None:
        """Handle the end of the stream.

        Raises:
            UpstreamError: the end is premature.
        """
        if not self.ended:
            raise failures.cut_off(self._errors.name)

    def _parsed(self, data: bytes) -> Json:
        """Parse the data of an event.

        Raises:
            UpstreamError: the stream ends prematurely, or the data is not a JSON object.
        """
        if data == DONE:
            raise failures.cut_off(self._errors.name)
        event = self._bounds.parse(data)
        if not isinstance(event, dict):
            raise self._broken("streamed an event that is not a JSON object", data)
        return event

    def _start(self, response: Json) -> Event:
        """Return the start event of an answer, from the first response object."""
        given_id = response.get("id") or self._new_id("resp_")
        return self._started_as(given_id, response.get("model") or self._call.target.upstream)

    def _started_as(self, given_id: object, model: object) -> Event:
        """Return the start event of an answer with an id and a model name."""
        self._started = True
        event = Event()
        event.start.id, event.start.model = name_of(given_id), name_of(model)
        return event
