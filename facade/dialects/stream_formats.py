"""Formats of streamed answers."""

from typing import Final, NamedTuple


class StreamFormat(NamedTuple):
    """The format of a stream.

    Attributes:
        content_type: its media type.
        has_comments: whether clients ignore comments, which then name the dropped parts of an
            answer.
    """

    content_type: str
    has_comments: bool


_EVENTS: Final = "text/event-stream; charset=utf-8"

EVENTS: Final = StreamFormat(_EVENTS, has_comments=True)
# Google's clients take every line without `data:` for JSON.
DATA_ALONE: Final = StreamFormat(_EVENTS, has_comments=False)
ARRAY: Final = StreamFormat("application/json", has_comments=False)
