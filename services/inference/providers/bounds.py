"""Bounds on the content of one provider's answer, and the parsing of its JSON. Pure.

`services.common.http` bounds the bytes. The bounds here are on content that costs more than its
bytes: many small parts, many small JSON values, deep nesting, huge numbers.
"""

import re
from typing import Any

import orjson

from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.common.text.lenient_json import SplitCharacters, parse_leniently
from services.inference.providers.failures import over_limit

# Maximum characters of an answer's id and of its model name. Streams repeat both.
MAX_NAME = 256
# Upper bound of token counts; sums of several such counts are still valid JSON numbers.
MAX_TOKENS = 2**53
# Maximum levels at which kept JSON is nested in the JSON of an answer.
_DEPTH = 8
# A JSON string, or the rest of the text if the string is unterminated.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class Bounds:
    """The remaining parts and values that one answer may have.

    Args:
        provider: the provider's name in the settings, for errors.
        limits: the bounds.

    Attributes:
        is_mended: whether the last text that `parse` has read is not the JSON of its value.
    """

    def __init__(self, provider: str, limits: Limits) -> None:
        self.is_mended = False
        self._provider = provider
        self._limits = limits
        self._parts = limits.max_answer_parts
        self._values = limits.max_answer_values
        self._characters: SplitCharacters | None = None  # from the first invalid text on

    def part(self) -> None:
        """Count a block, a tool call, or a piece that is kept until others arrive.

        Raises:
            UpstreamError: the answer has too many.
        """
        self._parts -= 1
        if self._parts < 0:
            raise over_limit(
                self._provider,
                f"returned more than {self._limits.max_answer_parts:,} parts",
                "limits.max_answer_parts",
            )

    def check(self, data: bytes) -> None:
        """Check the number of values of an event; see `check_values`."""
        check_values(data, self._provider, self._limits.max_answer_values)

    def parse(self, data: bytes) -> Any:
        """Parse the JSON of an answer or of one event; see the function `parse`.

        Characters are joined if two events contain their halves. `is_mended` then states whether
        the value differs from the text.
        """
        if len(data) > self._limits.max_answer_values:
            self.check(data)
        self.is_mended = False
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            self.is_mended = True
            if self._characters is None:
                self._characters = SplitCharacters()
            return self._characters.parse(data)
        if self._characters is not None and self._characters.is_waiting:
            self.is_mended = True
            self._characters.complete(value)
        return value

    def keep_delta(self, delta: dict[str, Any]) -> bytes:
        """Return the JSON of a delta of an unknown type; these are merged at the end of the answer.

        Raises:
            UpstreamError: the answer has too many such deltas, or too many values in them.
            ValueError: the delta is nested too deeply.
        """
        self.part()
        return self.keep_fields(delta)

    def keep_fields(self, fields: dict[str, Any]) -> bytes:
        """Return the JSON of unknown fields, which are joined in order of arrival.

        Raises:
            UpstreamError: the answer has too many values in such fields.
            ValueError: the fields are nested too deeply.
        """
        data = dump(fields)
        self._values -= _values(data)
        if self._values < 0:
            raise _too_many_values(self._provider, self._limits.max_answer_values)
        return data


def parse(data: bytes, provider: str, max_values: int) -> Any:
    """Parse a JSON text; return None if it is invalid.

    Some deviations are accepted: see `services.common.text.lenient_json`.

    Raises:
        UpstreamError: as `check_values`.
    """
    check_values(data, provider, max_values)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return parse_leniently(data)


def check_values(data: bytes, provider: str, max_values: int) -> None:
    """Check the number of values in a JSON text; a parsed value may take many times its bytes.

    Raises:
        UpstreamError: the text has more than `max_values` values.
    """
    # The marks may be inside strings: count them exactly only if there are too many.
    if len(data) > max_values and _marks(data) > max_values and _values(data) > max_values:
        raise _too_many_values(provider, max_values)


def dump(value: object) -> bytes:
    """Return a value as JSON that can be nested in the JSON of an answer.

    Raises:
        ValueError: the value is nested too deeply for that.
    """
    nested = value
    for _ in range(_DEPTH):
        nested = (nested,)
    try:
        return orjson.dumps(nested)[_DEPTH:-_DEPTH]
    except orjson.JSONEncodeError as error:
        raise ValueError("nested too deeply") from error


def tokens(value: object) -> int:
    """Return a value as a token count.

    Raises:
        ValueError: the value is not a valid token count.
    """
    if type(value) is int and 0 <= value < MAX_TOKENS:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or not 0 <= value < MAX_TOKENS:
        raise ValueError("no number of tokens")
    return int(value)


def name_of(value: object) -> str:
    """Return an answer's id or model name.

    Raises:
        ValueError: the value is not a string, or too long.
    """
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise ValueError("no name")
    return value


def _values(data: bytes) -> int:
    """Return the number of values in a JSON text, or slightly more."""
    return _marks(_STRING.sub(b"", data))


def _marks(data: bytes) -> int:
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


def _too_many_values(provider: str, most: int) -> UpstreamError:
    return over_limit(
        provider, f"returned more than {most:,} JSON values", "limits.max_answer_values"
    )
