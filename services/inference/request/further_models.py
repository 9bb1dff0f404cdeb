"""Models that a request names in fields of its own dialect, besides the one that it asks for. Pure.

A provider may call them as well, or instead: fallbacks, advisors, models of images. They are found
by the names of the fields, at any place outside of the caller's own content (`native_fields`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from gateway.conversation.v1.conversation_pb2 import Message, Opaque
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, ForwardRequest, GenerateRequest
from services.inference.request.form_fields import fields_of_form
from services.inference.request.native_fields import FieldClass, classify, snake_case
from services.inference.request.paths import Place, block_path

# Names of fields with models, and endings of such names.
MODEL_FIELDS: Final = frozenset({"model", "models", "fallbacks"})
_ENDINGS: Final = ("_model", "_models")
# Records of models that were called for earlier answers.
HISTORY: Final = frozenset({"svg_usage", "usage"})
_FALLBACK_BLOCK: Final = "fallback"
# The places whose meaning is known, without indexes: Anthropic's `fallbacks` and advisor tool,
# OpenRouter's `models`, OpenAI's moderation and images.
_KNOWN: Final = re.compile(
    r"(?:extra\.)?(?:fallbacks\[\]\.model|models\[\]|(?:moderation|svg)\.model)"
    r"|(?:.*\.)?tools?(?:\[\])?(?:\.extra)?(?:\.svg)?\.model"
)
_FREE: Final = re.compile(r"(?:.*\.)?extra\.moderation\.model")
_STEP: Final = re.compile(r"fallback_config\.steps\[\]\.parameters\.")
_INDEX: Final = re.compile(r"\[\d+\]")
_CHAINS: Final = (inference_pb2.FALLBACK_MODE_ENABLED, inference_pb2.FALLBACK_MODE_STRICT)


class FurtherModel(NamedTuple):
    """A model that a request names.

    Attributes:
        path: the path of the field.
        name: the name, as its provider knows it.
    """

    path: str
    name: str

    @property
    def is_known(self) -> bool:
        """Whether the field is known to name a model that is called for this request."""
        return _KNOWN.fullmatch(_STEP.sub("", _INDEX.sub("[]", self.path), 1)) is not None

    @property
    def is_free(self) -> bool:
        """Whether calling the model costs nothing."""
        return _FREE.fullmatch(self.path) is not None


def further_models(
    request: GenerateRequest | EmbedRequest | ForwardRequest,
) -> Iterator[FurtherModel]:
    """Yield the models named in fields without a canonical name, and in those of fallback steps."""
    if isinstance(request, ForwardRequest):
        yield from _of_forwarded(request)
        return
    yield from _of_opaque(request.extra, "extra")
    if isinstance(request, EmbedRequest):
        return
    yield from _of_request(request, "")
    if request.fallback in _CHAINS:
        for index, step in enumerate(request.fallback_config.steps):
            if step.HasField("parameters"):
                path = f"fallback_config.steps[{index}].parameters."
                yield from _of_opaque(step.parameters.extra, f"{path}extra")
                yield from _of_request(step.parameters, path)


def _of_forwarded(request: ForwardRequest) -> Iterator[FurtherModel]:
    """Yield the models in the fields of a forwarded request, besides its `model`."""
    for one in _of_opaque(Opaque(json=request.json), ""):
        if one.path != "model":
            yield one
    for field in fields_of_form(part for part in request.parts if part.name != "model"):
        yield from models_in(field, "")


def _of_request(request: GenerateRequest, path: str) -> Iterator[FurtherModel]:
    for index, tool in enumerate(request.tools):
        yield from _of_opaque(tool.extra, f"{path}tools[{index}]{'' if tool.opaque else '.extra'}")
    yield from _of_opaque(request.tool_choice.extra, f"{path}tool_choice.extra")
    yield from _of_opaque(request.thinking.extra, f"{path}thinking.extra")
    for index, message in enumerate(request.messages):
        yield from _of_message(message, index, path)


def _of_message(message: Message, index: int, path: str) -> Iterator[FurtherModel]:
    if message.HasField("extra"):
        yield from _of_opaque(message.extra, f"{path}messages[{index}].extra")
    for place, block in enumerate(message.blocks):
        if block.HasField("opaque"):
            yield from _of_opaque(block.opaque, f"{path}{block_path(index, place)}")
        elif block.HasField("tool_result"):
            for inner, part in enumerate(block.tool_result.blocks):
                where = f"{path}{block_path(index, place, inner)}"
                if part.HasField("opaque"):
                    yield from _of_opaque(part.opaque, where)
                if part.HasField("extra"):
                    yield from _of_opaque(part.extra, f"{where}.extra")
        if block.HasField("extra"):
            yield from _of_opaque(block.extra, f"{path}{block_path(index, place)}.extra")


def _of_opaque(opaque: Opaque, path: str) -> Iterator[FurtherModel]:
    json = opaque.json
    if not json or not (b"odel" in json or b"fallbacks" in json or b"\\" in json):
        return
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        return  # no provider is sent it
    if isinstance(value, dict) and value.get("type") != _FALLBACK_BLOCK:
        yield from models_in(value, path)


def models_in(value: Mapping[str, Any], path: str) -> Iterator[FurtherModel]:
    """Yield the models that parsed JSON names; `path` is its path."""
    waiting: list[tuple[Any, Place | None, bool]] = [(value, None, False)]
    while waiting:
        inner, place, names_models = waiting.pop()
        if isinstance(inner, str):
            if names_models and inner and place is not None:
                yield FurtherModel(place.path(path), inner)
        elif isinstance(inner, list):
            waiting += [(one, Place(place, at), names_models) for at, one in enumerate(inner)]
        elif isinstance(inner, dict):
            for field, one in inner.items():
                if isinstance(one, str | list | dict) and field not in HISTORY:
                    if classify(field) is not FieldClass.CONTENT:
                        waiting.append((one, Place(place, field), is_model_field(field)))


def is_model_field(name: str) -> bool:
    """Return whether a field has the names of models, by its own name in any case."""
    name = snake_case(name)
    return name in MODEL_FIELDS or name.endswith(_ENDINGS)
