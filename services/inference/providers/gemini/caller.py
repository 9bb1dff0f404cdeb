"""What a translation knows of the caller: whose words the request is in, and what may go on."""

from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque
from services.common.errors import GatewayError, invalid, unsupported
from services.inference.providers.base import Call

Json = dict[str, Any]

# What a field of the canonical request is called in each dialect, where names differ.
_NAMES = {
    conversation_pb2.DIALECT_OPENAI: {
        "stop_sequences": "stop",
        "output_format": "response_format",
        "end_user": "user",
        "thinking": "reasoning_effort",
        "parallel": "parallel_tool_calls",
        "strict": "tools[].function.strict",
    },
    conversation_pb2.DIALECT_ANTHROPIC: {
        "output_format": "output_config.format",
        "end_user": "metadata.user_id",
        "betas": "anthropic-beta",
        "parallel": "tool_choice.disable_parallel_tool_use",
        "strict": "tools[].strict",
    },
}


class Caller:
    """The caller's side of one call.

    Attributes:
        dialect: which one the request was written in.
        speaks_openai: whether the request was written in OpenAI's.
        pass_stateful: whether callers may name things kept at the provider.
        fetches_urls: whether the provider fetches media by address.
        without: fields that the model has refused.
    """

    def __init__(self, call: Call, *, pass_stateful: bool, fetches_urls: bool) -> None:
        self.dialect = call.request.dialect
        self.speaks_openai = self.dialect == conversation_pb2.DIALECT_OPENAI
        self.pass_stateful = pass_stateful
        self.fetches_urls = fetches_urls
        self.without = call.without
        self._names = _NAMES.get(self.dialect, {})
        self._dropped = call.dropped
        self._told = set(call.dropped)

    def name(self, field: str) -> str:
        """Return the path of a field of the canonical request in the caller's own words."""
        return self._names.get(field, field)

    def drop(self, field: str) -> None:
        """Note that the provider has nothing for a field.

        In a long conversation fields repeat, so paths there name no single place.
        """
        path = self.name(field)
        if path not in self._told:
            self._told.add(path)
            self._dropped.append(path)

    def drop_fields(self, opaque: Opaque, told_as: str, but: tuple[str, ...] = ()) -> Json:
        """Note that the provider has nothing for the fields of an opaque object.

        Returns:
            The object, for those of its fields that are read nevertheless.
        """
        if not opaque.json:
            return {}
        fields = json_object(opaque.json, told_as)
        for name, value in fields.items():
            if value is not None and name not in but:
                self.drop(f"{told_as}.{name}")
        return fields


def json_object(text: bytes | str, path: str) -> Json:
    """Read the JSON object that the caller gave at `path`.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: a JSON object is needed")
    return value


def refuse(path: str, what: str) -> GatewayError:
    """Return the refusal of a part of a request that Gemini's API has no place for."""
    return unsupported(path, f"{path}: this model's provider cannot take {what}")


def kept_at_provider(path: str) -> GatewayError:
    """Return the refusal of a name of something kept under the operator's account."""
    return invalid(
        path,
        f"{path}: names something kept at the provider, which this gateway does not pass on "
        "(the provider's setting pass_stateful lets it)",
    )
