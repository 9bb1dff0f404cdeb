"""The least value that a type of the SDKs allows, in two variants.

What no type says is in tables here: encoded data, names that other parts refer to, schemas, and
fields that a server needs although its types let them be left out.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin

from services.sandbox.model.signatures import encrypt, redact, sign
from tests.facade.conversations import png
from tests.surface.sdk_types import hints_of, is_object, is_required, leaves

# In place of the ids of files that the caller has stored.
PICTURE_FILE, DOCUMENT_FILE = "<picture>", "<document>"
# The caller's tools.
TOOLS = ("get_weather", "get_time")
SCHEMAS = tuple(
    {"type": "object", "properties": {name: {"type": "string"}}} for name in ("city", "country")
)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


_PICTURES = tuple(_encoded(png(width, 5)) for width in (7, 9))
PDF = b"%PDF-1.4\n%%EOF\n"
_PDFS = (_encoded(PDF), _encoded(PDF + b"\n"))
_SOUNDS = tuple(_encoded(b"RIFF\x24\0\0\0WAVEfmt %d" % number) for number in (1, 2))
THOUGHTS = ("Thought.", "Another thought.")

# Two values by the type and name of a field, or by its name alone.
_VALUES: Mapping[str, Sequence[Any]] = {
    "arguments": ('{"city": "Bern"}', '{"city": "Oslo"}'),
    "model": ("other-model", "another-model"),
    **dict.fromkeys(("parameters", "input_schema", "schema", "output_schema"), SCHEMAS),
    "input_examples": ([{"city": "Bern"}], [{"city": "Oslo"}]),
    "file_data": tuple(f"data:application/pdf;base64,{one}" for one in _PDFS),
    "filename": ("text.pdf", "other.pdf"),
    **dict.fromkeys(
        ("image_url", "ImageURL.url"), tuple(f"data:image/png;base64,{one}" for one in _PICTURES)
    ),
    "file_url": ("https://example.com/x.pdf", "https://example.com/y.pdf"),
    "url": ("https://example.com/x", "https://example.com/y"),
    "uri": ("https://example.com/x", "https://example.com/y"),
    "data": _PICTURES,
    "InputAudio.data": _SOUNDS,
    "BetaBase64PDFSourceParam.data": _PDFS,
    "BetaPlainTextSourceParam.data": ("A document.", "Another document."),
    "BetaRedactedThinkingBlockParam.data": tuple(redact(one) for one in THOUGHTS),
    "result": _PICTURES,
    "thinking": THOUGHTS,
    "signature": tuple(sign(one) for one in THOUGHTS),
    "encrypted_content": (_encoded(b"hidden 1"), _encoded(b"hidden 2")),
    "ResponseReasoningItemParam.encrypted_content": tuple(encrypt(one) for one in THOUGHTS),
    "budget_tokens": (2_000, 3_000),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens"), (5_000, 6_000)),
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), (0.5, 0.6)),
    "n": (2, 3),
    "Choice.index": (0, 0),
    "ResponseOutputMessage.status": ("completed", "incomplete"),
    "ResponseOutputText.annotations": ([], []),
    "BetaBase64ImageSourceParam.media_type": ("image/png", "image/png"),
    "BetaFileImageSourceParam.file_id": (PICTURE_FILE, PICTURE_FILE),
    "BetaFileDocumentSourceParam.file_id": (DOCUMENT_FILE, DOCUMENT_FILE),
    "FileFile.file_id": (DOCUMENT_FILE, DOCUMENT_FILE),
    "ResponseInputImageParam.file_id": (PICTURE_FILE, PICTURE_FILE),
    "ResponseInputImageContentParam.file_id": (PICTURE_FILE, PICTURE_FILE),
    "ResponseInputFileParam.file_id": (DOCUMENT_FILE, DOCUMENT_FILE),
    "ResponseInputFileContentParam.file_id": (DOCUMENT_FILE, DOCUMENT_FILE),
    "ChatCompletionAllowedToolsParam.tools": tuple(
        [{"type": "function", "function": {"name": name}}] for name in TOOLS
    ),
    "ToolChoiceAllowedParam.tools": tuple([{"type": "function", "name": name}] for name in TOOLS),
    "top_logprobs": (3, 4),
    "logit_bias": ({"50256": -100}, {"50256": 100}),
    **dict.fromkeys(
        (
            *("ToolChoiceFunctionParam.name", "ToolChoiceCustomParam.name", "Custom.name"),
            *("BetaToolChoiceToolParam.name", "BetaToolUseBlockParam.name", "BetaToolParam.name"),
            *("ChatCompletionFunctionCallOptionParam.name", "Function.name"),
            *("FunctionCall.name", "FunctionToolParam.name", "CustomToolParam.name"),
            *("ResponseFunctionToolCallParam.name", "ResponseCustomToolCallParam.name"),
            *("ChatCompletionFunctionMessageParam.name", "BetaToolChangeToolReferenceParam.name"),
        ),
        TOOLS,
    ),
}
_NUMBERS: Mapping[Any, tuple[Any, Any]] = {int: (5, 6), float: (0.5, 0.6), bool: (True, False)}
# Fields that servers need although the types let them be left out.
NEEDED: Mapping[str, frozenset[str]] = {
    "JSONSchema": frozenset({"schema"}),
    "FileFile": frozenset({"file_data"}),
    "ResponseInputImageParam": frozenset({"image_url"}),
    "ResponseInputImageContentParam": frozenset({"image_url"}),
    "ResponseInputFileParam": frozenset({"file_data"}),
    "ResponseInputFileContentParam": frozenset({"file_data"}),
    "ResponseReasoningItemParam": frozenset({"encrypted_content"}),
    "FunctionCallOutput": frozenset({"call_id"}),
    "ResponseFileSearchToolCallParam": frozenset({"results"}),
    "ResponseComputerToolCallParam": frozenset({"action"}),
    "BetaSystemMessageParam": frozenset({"content"}),
    "ChatCompletionMessage": frozenset({"content"}),
    "BetaMessage": frozenset({"stop_reason"}),
    "BetaRefusalStopDetails": frozenset({"explanation"}),
    "Response": frozenset({"status"}),
    "ChoiceDelta": frozenset({"content"}),
    "ChoiceDeltaToolCall": frozenset({"id", "function"}),
    "ChoiceDeltaToolCallFunction": frozenset({"name"}),
    "BetaCompactionBlockParam": frozenset({"content"}),
}

# Fields of which an object has one.
EXCLUSIVE = frozenset({"file_id", "file_url", "file_data", "image_url"})


def sample(hint: Any, holder: str = "", name: str = "", variant: int = 0) -> Any:
    """Return a value of a type.

    Args:
        hint: the type.
        holder: the name of the type that has the field.
        name: of the field.
        variant: 1 for a value with other texts and numbers.
    """
    for key in (f"{holder}.{name}", name):
        if key in _VALUES and _fits(_VALUES[key][variant], hint):
            return _VALUES[key][variant]
    return _made(hint, holder, name, variant)


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(value, list):
        return get_origin(hint) is not None
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kinds = set(leaves(hint))
    return type(value) in kinds or object in kinds or (type(value) is int and float in kinds)


def _made(hint: Any, holder: str, name: str, variant: int) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_object(hint):
        return least(hint, variant)
    if origin is Literal:
        return arguments[min(variant, len(arguments) - 1)]
    if origin in (Required, NotRequired) or hasattr(hint, "__metadata__"):
        return sample(arguments[0], holder, name, variant)
    if origin in (Union, UnionType):
        first = next(one for one in arguments if one is not NoneType)
        return sample(first, holder, name, variant)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"key": sample(arguments[1], variant=variant)}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [sample(arguments[0], holder, f"{name}[]", variant)]
    if hint in _NUMBERS:
        return _NUMBERS[hint][variant]
    if hint in (str, object):
        return f"{name.removesuffix('[]') or 'value'}_{'other' if variant else 'sample'}"
    if hint is datetime:
        return "2026-01-01T00:00:00Z"
    if hint is dict:
        return {"key": f"value_{variant}"}
    raise TypeError(f"no sample of {hint} for {holder}.{name}")


def least(kind: Any, variant: int = 0) -> dict[str, Any]:
    """Return an object of a type with the fields that it needs alone, or its last."""
    hints = hints_of(kind)
    # Without a field an object says nothing.
    names = [name for name in hints if is_needed(kind, name, hints[name])] or list(hints)[-1:]
    return {name: sample(hints[name], kind.__name__, name, variant) for name in names}


def is_needed(kind: Any, name: str, hint: Any) -> bool:
    """Return whether an object needs a field, by its type or by its server."""
    return is_required(kind, name, hint) or name in NEEDED.get(kind.__name__, ())


def inside(hint: Any, member: Any, value: Any) -> Any:
    """Return a value of a type that holds `value`, which is of one of its members, or None."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is member:
        return value
    if origin is Literal or not arguments:
        return None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        held = inside(arguments[1], member, value)
        return None if held is None else {"key": held}
    held = next(_held(arguments, member, value), None)
    is_list = isinstance(origin, type) and issubclass(origin, Iterable)
    return [held] if is_list and held is not None else held


def _held(hints: Iterable[Any], member: Any, value: Any) -> Iterator[Any]:
    return (held for hint in hints if (held := inside(hint, member, value)) is not None)
