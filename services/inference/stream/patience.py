"""The first content of a stream, and how long it may be silent after that. Pure.

A stream is ended long before `limits.stream_idle_s` if another model can continue the answer and
the silence is several times longer than any of this stream, and than is usual for its model.

Pings and comments end a silence, since a provider sends them while its model works or its tools
run. They are bounded by the time that a model has to begin: `limits.step_timeout_s`, or
`limits.stream_idle_s` if another model can continue the answer.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from gateway.inference.v1.inference_pb2 import Event
from services.inference.circuit_breaker import ModelKey

# A silence is a stall if it is this many times longer than the longest one before it.
_TIMES_LONGER = 4
# No shorter silence is a stall.
_LEAST_S = 15.0
# The same for a model of which too few streams are known.
_LEAST_UNKNOWN_S = 30.0
# Complete streams that are remembered of each model, and how many of them are enough.
_KEPT = 20
_ENOUGH = 5
# Models whose silences are stored; the least recently used one is evicted.
_MAX_MODELS = 1_000


def has_content(batch: Iterable[Event]) -> bool:
    """Return whether a batch has a part of the answer's content, or its end.

    The start of an empty text or thinking block is none, nor are fields of the answer as a whole:
    providers send them before they generate anything. The time that a model has to begin ends with
    the first content.
    """
    for event in batch:
        kind = event.WhichOneof("kind")
        if kind == "block_start":
            block = event.block_start
            if block.WhichOneof("kind") not in ("text", "thinking"):
                return True
            if block.text or block.thinking.text:
                return True
        elif kind == "extra_fields":
            if event.extra_fields.HasField("message"):
                return True
        elif kind not in ("start", "usage", "unknown"):
            return True
    return False


class Patience:
    """The silence that one stream is allowed.

    Args:
        limit_s: the longest silence in any case.
        without_content_s: the longest time of nothing but pings and comments.
        usual_s: returns the longest usual silence of the model, or None if it is unknown.
        may_switch: returns whether another model can continue the answer now; None for never.

    Attributes:
        longest_s: the longest silence so far that ended with data.
    """

    __slots__ = ("_limit_s", "_may_switch", "_usual_s", "_without_content_s", "longest_s")

    def __init__(
        self,
        limit_s: float,
        without_content_s: float,
        usual_s: Callable[[], float | None] | None = None,
        may_switch: Callable[[], bool] | None = None,
    ) -> None:
        self.longest_s = 0.0
        self._limit_s = limit_s
        self._without_content_s = max(limit_s, without_content_s)
        self._usual_s = usual_s
        self._may_switch = may_switch

    def allowed_s(self) -> float:
        """Return how long the stream may be silent now."""
        if not self._another_may_continue():
            return self._limit_s
        usual = None if self._usual_s is None else self._usual_s()
        least = _LEAST_UNKNOWN_S if usual is None else _LEAST_S
        longest = max(self.longest_s, usual or 0.0)
        return min(self._limit_s, max(least, _TIMES_LONGER * longest))

    def without_content_s(self) -> float:
        """Return how long the stream may send only pings and comments now."""
        return self._limit_s if self._another_may_continue() else self._without_content_s

    def _another_may_continue(self) -> bool:
        return self._may_switch is not None and self._may_switch()


class UsualSilences:
    """The longest silence of each of the latest complete streams of each model."""

    def __init__(self) -> None:
        self._by_model: OrderedDict[ModelKey, deque[float]] = OrderedDict()

    def add(self, key: ModelKey, longest_s: float) -> None:
        """Add the longest silence of a stream that was complete."""
        silences = self._by_model.get(key)
        if silences is None:
            if len(self._by_model) >= _MAX_MODELS:
                self._by_model.popitem(last=False)
            silences = self._by_model[key] = deque(maxlen=_KEPT)
        else:
            self._by_model.move_to_end(key)
        silences.append(longest_s)

    def of(self, key: ModelKey) -> float | None:
        """Return the longest usual silence of a model, or None if too few streams are known.

        The longest of all is left out: one stream may have been interrupted by a disturbance.
        """
        silences = self._by_model.get(key)
        if silences is None or len(silences) < _ENOUGH:
            return None
        return sorted(silences)[-2]
