"""What a translation knows of the caller: whose words the request is in, and how to name them."""

from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque
from services.common.errors import GatewayError, invalid
from services.inference.providers.base import Call
from services.inference.refusals import THINKING_BUDGET, UNSIGNED_THINKING

# What a field of the canonical request is called in each dialect, where names differ.
_NAMES = {
    conversation_pb2.DIALECT_OPENAI: {
        "stop_sequences": "stop",
        "output_format": "response_format",
        "end_user": "user",
        "thinking.effort": "reasoning_effort",
    },
    conversation_pb2.DIALECT_ANTHROPIC: {
        "output_format": "output_config.format",
        "end_user": "metadata.user_id",
        "thinking.effort": "output_config.effort",
        "betas": "anthropic-beta",
    },
}

_STATEFUL_TYPES = ("file", "container_upload")


class Caller:
    """The caller's side of one call, and what of it may go on.

    Attributes:
        dialect: whose words the request is in.
        speaks_anthropic: whether the request was written in Anthropic's own dialect.
        speaks_openai: whether it was written in OpenAI's.
        pass_stateful: whether callers may name things kept at the provider.
        fetches_urls: whether the provider fetches media by address.
        official: whether the provider is Anthropic itself.
        takes_unsigned: whether it may be sent thinking that no provider has signed.
        takes_budgets: whether the model may be sent a budget of tokens for thinking.
    """

    def __init__(
        self, call: Call, *, pass_stateful: bool, fetches_urls: bool, official: bool
    ) -> None:
        dialect = call.request.dialect
        self.dialect = dialect
        self.official = official
        self.speaks_anthropic = dialect == conversation_pb2.DIALECT_ANTHROPIC
        self.speaks_openai = dialect == conversation_pb2.DIALECT_OPENAI
        self.pass_stateful = pass_stateful
        self.fetches_urls = fetches_urls
        self.takes_unsigned = not official and UNSIGNED_THINKING not in call.without
        self._without = call.without
        self.takes_budgets = THINKING_BUDGET not in call.without
        self._names = _NAMES.get(dialect, {})
        self._dropped = call.dropped
        self._told = set(call.dropped)

    def name(self, field: str) -> str:
        """Return the path of a field of the canonical request in the caller's own words."""
        return self._names.get(field, field)

    def drop(self, path: str) -> None:
        """Note the field at `path` as dropped: the provider has nothing for it."""
        if path not in self._told:
            self._told.add(path)
            self._dropped.append(path)

    def cache_control(self, opaque: Opaque) -> Any:
        """Return the `cache_control` that clients of OpenAI's dialect write, or None.

        It is a field of a message, of a part of one, of a tool or of a tool's `function`.
        """
        if not self.speaks_openai or b"cache_control" not in opaque.json:
            return None
        fields = json_object(opaque.json, "")
        function = fields.get("function")
        if isinstance(function, dict) and "cache_control" in function:
            return function["cache_control"]
        return fields.get("cache_control")

    def own_fields(self, opaque: Opaque, path: str, *, told_as: str = "") -> dict[str, Any]:
        """Return the fields of an opaque object that are Anthropic's; tell those that are not.

        Args:
            opaque: possibly empty.
            path: of the object the fields belong to, in the caller's words; "" for the request.
            told_as: the path under which foreign fields are told; `path` when empty. A
                long conversation repeats its fields, so there it names no single place.
        """
        if not opaque.json:
            return {}
        fields = json_object(opaque.json, path)
        if opaque.dialect == conversation_pb2.DIALECT_ANTHROPIC:
            if path:
                self.check_state(fields, path)
            else:
                for field, value in fields.items():
                    self.check_state(value, field)
            return self._taken(fields, told_as) if told_as.startswith("messages[]") else fields
        for field, value in fields.items():
            holds_mark = isinstance(value, dict) and value.keys() == {"cache_control"}
            if value is not None and field != "cache_control" and not holds_mark:
                self.drop(f"{told_as or path}.{field}".lstrip("."))
        return {}

    def _taken(self, fields: dict[str, Any], told_as: str) -> dict[str, Any]:
        """Return the fields of messages that the model has not refused, and drop the others."""
        refused = {name for name in fields if f"{told_as}.{name}" in self._without}
        for name in refused:
            self.drop(f"{told_as}.{name}")
        return {name: value for name, value in fields.items() if name not in refused}

    def check_state(self, content: object, path: str) -> None:
        """Refuse JSON content that names a file kept at the provider.

        The arguments of a tool are the caller's own and mean nothing to the provider.
        """
        if self.pass_stateful:
            return
        left = [content]
        while left:
            part = left.pop()
            if isinstance(part, list):
                left.extend(part)
            elif isinstance(part, dict):
                if part.get("type") in _STATEFUL_TYPES and part.get("file_id") is not None:
                    raise kept_at_provider(path)
                left.extend(value for name, value in part.items() if name != "input")


def json_object(text: bytes | str, path: str) -> dict[str, Any]:
    """Read the JSON object that the caller gave at `path`.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise invalid(path, f"{path}: a JSON object is needed, and this is no JSON") from error
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: a JSON object is needed")
    return value


def kept_at_provider(path: str) -> GatewayError:
    """Refuse a name of something kept at the provider, where all callers share one account."""
    return invalid(
        path,
        f"{path}: names something kept at the provider, which this gateway does not pass on "
        "(the provider's setting pass_stateful lets it)",
    )
