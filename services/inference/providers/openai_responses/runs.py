"""Runs of text deltas: events of one stream that differ in their text and number alone. Pure.

They are recognised as OpenAI writes them, and not parsed one by one; others are none of a run. A
run is read as one delta with all texts.
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
    "sequence_number":(\d{1,15}),
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


def following(text: bytes, began: int, at: int) -> Run:
    """Return the deltas after one that has been read, of its text and numbered on from it.

    Args:
        text: of server-sent events.
        began: where the one begins.
        at: where it ends.
    """
    deltas: list[re.Match[bytes]] = []
    first = _DELTA.match(text, began) if at < len(text) else None
    if first is None:
        return Run(deltas, at)
    place, number = first[3], int(first[2])
    while delta := _DELTA.match(text, at):
        number += 1
        if delta[3] != place or delta[2] != b"%d" % number:
            break
        deltas.append(delta)
        at = delta.end()
    return Run(deltas, at)
