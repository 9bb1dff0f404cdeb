"""Runs of text deltas: events of one stream that differ in their text and number alone. Pure.

They are recognised as OpenAI writes them, and not parsed, once one of the same text has been;
others are none of a run. A run is read as one delta with all texts.
"""

import re
from typing import Any

import orjson

from services.inference.providers.delta_templates import STRING

TEXT_DELTA = "response.output_text.delta"
# Between events in `Event.native`: as in JSON text sequences (RFC 7464), in no JSON text.
SEPARATOR = b"\x1e"
_DELTA = re.compile(
    rb"""event:\ response\.output_text\.delta\n
    data:\ (\{"type":"response\.output_text\.delta",
    "sequence_number":(0|[1-9]\d{0,14}),
    ("item_id":"[^"\\\x00-\x1f]*","output_index":(\d{1,9}),"content_index":(\d{1,9})),
    "delta":"(%b)",
    "logprobs":\[\]
    (?:,"obfuscation":"[0-9A-Za-z+/=_-]*")?\})\n\n"""
    % STRING,
    re.VERBOSE,
)


class Run:
    """Deltas of one text, in order.

    Attributes:
        deltas: the events.
        end: where the last one ends in the text of the stream.
    """

    __slots__ = ("deltas", "end")

    def __init__(self, deltas: list[re.Match[bytes]], end: int) -> None:
        self.deltas = deltas
        self.end = end

    def joined(self) -> dict[str, Any]:
        """Return one event with all texts."""
        first = self.deltas[0]
        text = b"".join([delta[6] for delta in self.deltas])
        return {
            "type": TEXT_DELTA,
            "output_index": int(first[4]),
            "content_index": int(first[5]),
            "delta": orjson.loads(b'"%b"' % text),
        }

    def native(self) -> bytes:
        """Return the events as the provider wrote them, in the form of `Event.native`."""
        return SEPARATOR.join([delta[1] for delta in self.deltas])


def place_of(text: bytes, at: int) -> bytes:
    """Return what says which text the delta at `at` belongs to, b"" where it is none of a run."""
    delta = _DELTA.match(text, at)
    return delta[3] if delta else b""


def run_of(text: bytes, at: int, place: bytes) -> Run:
    """Return the deltas from `at` on, each numbered on from the one before.

    Args:
        text: of server-sent events.
        at: where one begins.
        place: of a delta that has been read, as `place_of` returns it; others end the run.
    """
    deltas: list[re.Match[bytes]] = []
    number = -1
    while (delta := _DELTA.match(text, at)) and delta[3] == place:
        if not deltas:
            number = int(delta[2])
        elif delta[2] != b"%d" % number:
            break
        number += 1
        deltas.append(delta)
        at = delta.end()
    return Run(deltas, at)
