"""Bounds on the content of one provider's answer, and the parsing of its JSON. Pure.

Bytes are bounded where they are read (`services.inference.http`); here is what few bytes
can make much of: many small parts, many small JSON values, deep nesting, huge numbers.
"""

import re
from typing import Any

import orjson

from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers.failures import over_limit

# Characters of what an answer is called: its id and its model. Streams repeat both.
MAX_NAME = 256
# More tokens than this are none; sums of a few such counts are numbers of JSON still.
MAX_TOKENS = 2**53
# Kept JSON is put into that of an answer, at most so deep.
_DEPTH = 8
# A string of JSON, or what is left of the text where it has no end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class Bounds:
    """What may still come of one answer.

    Args:
        provider: its name in the settings, for failures.
        limits: the bounds.
    """

    def __init__(self, provider: str, limits: Limits) -> None:
        self._provider = provider
        self._limits = limits
        self._parts = limits.max_answer_parts
        self._values = limits.max_answer_values

    def part(self) -> None:
        """Count a block, a tool call, or a piece that has to wait for others.

        Raises:
            UpstreamError: the answer has too many.
        """
        self._parts -= 1
        if self._parts < 0:
            raise over_limit(
                self._provider,
                f"answered more than {self._limits.max_answer_parts:,} parts",
                "limits.max_answer_parts",
            )

    def check(self, data: bytes) -> None:
        """Check the number of values of an event; see `check_values`."""
        check_values(data, self._provider, self._limits.max_answer_values)

    def parse(self, data: bytes) -> Any:
        """Return the value of an answer, or of one event; see `parse`."""
        return parse(data, self._provider, self._limits.max_answer_values)

    def keep_delta(self, delta: dict[str, Any]) -> bytes:
        """Return the JSON of a delta without a name, all of which are put together at the end.

        Raises:
            UpstreamError: the answer has too many, or they hold too many values.
            ValueError: the delta is nested too deeply.
        """
        self.part()
        return self.keep_fields(delta)

    def keep_fields(self, fields: dict[str, Any]) -> bytes:
        """Return the JSON of fields without a name, which are joined as they come.

        Raises:
            UpstreamError: the answer has too many values in them.
            ValueError: they are nested too deeply.
        """
        data = dump(fields)
        self._values -= _values(data)
        if self._values < 0:
            raise _too_many_values(self._provider, self._limits.max_answer_values)
        return data


def parse(data: bytes, provider: str, max_values: int) -> Any:
    """Return the value of a JSON text; None where it is none.

    Raises:
        UpstreamError: as `check_values`.
    """
    check_values(data, provider, max_values)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def check_values(data: bytes, provider: str, max_values: int) -> None:
    """Check the number of values in a JSON text, each of which may take many times its bytes.

    Raises:
        UpstreamError: it holds more than `max_values` of them.
    """
    # What looks like values may be text.
    if len(data) > max_values and _marks(data) > max_values and _values(data) > max_values:
        raise _too_many_values(provider, max_values)


def dump(value: object) -> bytes:
    """Return a value as JSON that can be put into that of an answer.

    Raises:
        ValueError: it is nested too deeply for that.
    """
    nested = value
    for _ in range(_DEPTH):
        nested = (nested,)
    try:
        return orjson.dumps(nested)[_DEPTH:-_DEPTH]
    except orjson.JSONEncodeError as error:
        raise ValueError("nested too deeply") from error


def tokens(value: object) -> int:
    """Return a number of tokens.

    Raises:
        ValueError: it is none.
    """
    if type(value) is int and 0 <= value < MAX_TOKENS:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or not 0 <= value < MAX_TOKENS:
        raise ValueError("no number of tokens")
    return int(value)


def name_of(value: object) -> str:
    """Return what an answer is called.

    Raises:
        ValueError: it is no text, or too long.
    """
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise ValueError("no name")
    return value


def _values(data: bytes) -> int:
    """Return the number of values of a JSON text, or a little more."""
    return _marks(_STRING.sub(b"", data))


def _marks(data: bytes) -> int:
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


def _too_many_values(provider: str, most: int) -> UpstreamError:
    return over_limit(
        provider, f"answered more than {most:,} JSON values", "limits.max_answer_values"
    )
