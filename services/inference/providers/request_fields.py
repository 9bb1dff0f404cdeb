"""Fields of a request that the canonical model has no name for, on their way to a provider. Pure.

They go on unread to a provider of the dialect that they are written in, and to no other: there
they are dropped, or the request is refused where one of them is required.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_UNSPECIFIED,
    Dialect,
    Message,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.common.errors import GatewayError, invalid, unsupported
from services.common.plain_request import PlainMessage
from services.inference.providers.base import Call

Json = dict[str, Any]

_BILLING_LINE = "messages[].has_billing_line"


class RequestFields:
    """What of one call's request a provider may be sent; base class of each provider's own.

    Paths are those of `services.inference.paths`. In a long conversation fields repeat, so that
    dropped ones are reported below `messages[]`, without an index.

    Args:
        call: `call.dropped` is added to.
        pass_stateful: whether callers may name things kept at the provider.
        fetches_urls: whether the provider fetches media by address.

    Attributes:
        dialect: the one that the provider is asked in; DIALECT_UNSPECIFIED for one of its own.
        is_native: whether the request was written in that dialect, so that what its caller wrote
            goes on as it is.
        refused_fields: fields that the model refuses, names of `services.inference.refusals`.
    """

    dialect: Dialect.ValueType = DIALECT_UNSPECIFIED

    def __init__(self, call: Call, *, pass_stateful: bool, fetches_urls: bool) -> None:
        self.is_native = call.is_native(self.dialect)
        self.pass_stateful = pass_stateful
        self.fetches_urls = fetches_urls
        self.refused_fields = call.refused_fields
        self._call = call

    def drop(self, path: str) -> None:
        """Report the field at `path` as dropped: the provider has nothing for it."""
        self._call.drop(path)

    def own(self, opaque: Opaque, path: str, dropped_as: str = "") -> Json:
        """Return the fields of an opaque object if they are of the provider's dialect, else {}.

        Args:
            opaque: possibly empty.
            path: of the opaque object.
            dropped_as: path below which dropped fields are reported; `path` when empty.

        Raises:
            GatewayError: unsupported, for a required field of another dialect; invalid, for what
                is no JSON object or names something kept at the provider.
        """
        if not opaque.json:
            return {}
        if not self.is_own(opaque):
            self.leave_out(opaque, path, dropped_as)
            return {}
        fields = read_object(opaque.json, path)
        self.check_state(fields, path)
        return fields

    def of_request(self, extra: Opaque, *, but: Collection[str]) -> Json:
        """Return the fields of a request's `extra` that are not null, {} of another dialect.

        Args:
            extra: possibly empty.
            but: names of fields that never go on.

        Raises:
            GatewayError: as `leave_out`.
        """
        if not self.is_own(extra):
            self.leave_out(extra, "extra")
            return {}
        given = read_object(extra.json, "extra").items()
        return {name: value for name, value in given if value is not None and name not in but}

    def is_own(self, opaque: Opaque) -> bool:
        """Return whether an opaque object is written in the provider's dialect."""
        return opaque.dialect == self.dialect != DIALECT_UNSPECIFIED

    def leave_out(
        self, opaque: Opaque, path: str, dropped_as: str = "", *, read: Collection[str] = ()
    ) -> Json:
        """Report the fields of an opaque object as dropped; see `own`.

        Args:
            opaque: possibly empty.
            path: of the opaque object.
            dropped_as: path below which dropped fields are reported; `path` when empty.
            read: names of fields that are not dropped.

        Returns:
            The object.

        Raises:
            GatewayError: unsupported, for a required field; invalid, for what is no JSON object.
        """
        if not opaque.json:
            return {}
        fields = read_object(opaque.json, path)
        for name in opaque.required:
            if fields.get(name) is not None and name not in read:
                raise self.unsupported(f"{path}.{name}", f"`{name}`")
        for name in unnamed(fields, opaque.named):
            if name not in read:
                self.drop(f"{dropped_as or path}.{name}")
        return fields

    def taken_tools(self, request: GenerateRequest) -> Iterator[tuple[str, Tool]]:
        """Return the tools that the provider is sent, each with its path, and drop the others.

        Left out are those that are optional and written in another dialect.
        """
        for index, tool in enumerate(request.tools):
            path = f"tools[{index}]"
            if tool.opaque and is_spared(tool, request) and not self.is_own(tool.extra):
                self.drop(path)
            else:
                yield path, tool

    def taken(self, fields: Json, holder: str, dropped_as: str) -> Json:
        """Return the fields of an object that the model has not refused, and drop the others.

        Args:
            fields: the object.
            holder: what comes before their names in `refused_fields`.
            dropped_as: path below which dropped fields are reported.
        """
        refused_fields = self.refused_fields
        if not refused_fields:
            return fields
        refused = {
            name for name in fields if name in refused_fields or holder + name in refused_fields
        }
        for name in refused:
            self.drop(f"{dropped_as}.{name}")
        return {name: value for name, value in fields.items() if name not in refused}

    def system_prompt(self, message: Message) -> Message:
        """Return a system message without the line that says whom to bill."""
        if not (message.has_billing_line and message.blocks and message.blocks[0].text):
            return message
        self.drop(_BILLING_LINE)
        rest = Message()
        rest.CopyFrom(message)
        rest.has_billing_line = False
        text = rest.blocks[0].text.partition("\n")[2]
        if text:
            rest.blocks[0].text = text
        else:
            del rest.blocks[0]
        return rest

    def system_texts(self, message: PlainMessage) -> Sequence[str]:
        """Return the texts of a plain system message; as `system_prompt`."""
        if message.has_billing_line:
            self.drop(_BILLING_LINE)
        return message.texts_without_billing()

    def check_state(self, content: object, path: str) -> None:
        """Refuse JSON that names something kept at the provider, unless that is allowed."""

    def unsupported(self, path: str, what: str) -> GatewayError:
        """Return the refusal of a part of the request that the provider cannot be sent."""
        return unsupported(path, f"{path}: this model's provider cannot take {what}")

    def kept_at_provider(self, path: str) -> GatewayError:
        """Return the refusal of a name of something kept at the provider.

        All callers of the gateway share one account there.
        """
        return invalid(
            path,
            f"{path}: names something kept at the provider, which this gateway does not pass on "
            "(the provider's setting pass_stateful lets it)",
        )


def is_spared(tool: Tool, request: GenerateRequest) -> bool:
    """Return whether a tool may be left out: it is optional, and not the one to be called."""
    return tool.optional and not (tool.name and request.tool_choice.name == tool.name)


def read_object(json: bytes | str, path: str) -> Json:
    """Read the JSON object at `path`.

    Raises:
        GatewayError: invalid, when it is something else.
    """
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: a JSON object is needed")
    return value


def unnamed(fields: Mapping[str, Any], named: Collection[str], place: str = "") -> Iterator[str]:
    """Return the paths of fields of an opaque object that no canonical field says as well.

    Args:
        fields: the object, or one in it.
        named: paths of those that one does, as `Opaque.named`.
        place: what comes before the paths.
    """
    within: list[str] = []
    for name, value in fields.items():
        path = place + name
        if value is None or path in named:
            continue
        if isinstance(value, dict) and any(one.startswith(f"{path}.") for one in named):
            within += unnamed(value, named, f"{path}.")
        else:
            yield path
    yield from within
