"""The usage of helper models, such as models that describe images, in the usage of an answer."""

from collections.abc import Sequence

from gateway.conversation.v1.conversation_pb2 import HelperUsage, Usage
from gateway.inference.v1.inference_pb2 import Event
from services.inference.stream.filters import Batch


class HelperUsageFilter:
    """Adds the usage of helper models to the usage of an answer."""

    is_done = False

    def __init__(self, helpers: Sequence[HelperUsage]) -> None:
        """Return a filter that adds `helpers`."""
        self._helpers = helpers

    def feed(self, batch: Batch) -> Batch:
        """Return a batch with the helpers' usage in each usage event.

        A usage event is added after `start` if the batch has none: clients of Anthropic's messages
        read usage at the head of a stream.
        """
        passed: list[Event] = []
        begins = False
        for event in batch:
            if event.HasField("usage"):
                event, begins = self._with_helpers(event), False
            passed.append(event)
            begins = begins or event.HasField("start")
        if begins:
            passed.insert(1, self._with_helpers(Event(usage=Usage())))
        return passed

    def _with_helpers(self, event: Event) -> Event:
        changed = Event()
        changed.CopyFrom(event)
        changed.usage.helpers.extend(self._helpers)
        return changed
