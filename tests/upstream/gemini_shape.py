"""Structure of Gemini's requests: fields and types, with Google's error messages.

Source: Google's discovery document of the Generative Language API, `v1beta`, as far as the gateway
and its callers use it. Google's servers accept snake_case names as well; these are the document's
names.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.upstream.checks import Problem

Where = tuple[str | int, ...]
# A type name, an object's fields, or an array of one shape.
Shape = str | Mapping[str, Any] | Sequence[Any]

_STRUCT, _ANY = "TYPE_STRUCT", "TYPE_ANY"
_TEXT, _BYTES, _BOOL = "TYPE_STRING", "TYPE_BYTES", "TYPE_BOOL"
_INT, _NUMBER = "TYPE_INT32", "TYPE_FLOAT"

_BLOB = {"mimeType": _TEXT, "data": _BYTES, "displayName": _TEXT}
_FUNCTION_RESPONSE = {
    "id": _TEXT,
    "name": _TEXT,
    "response": _STRUCT,
    "parts": [{"inlineData": _BLOB}],
    "willContinue": _BOOL,
    "scheduling": _TEXT,
}
_PART = {
    "text": _TEXT,
    "inlineData": _BLOB,
    "fileData": {"mimeType": _TEXT, "fileUri": _TEXT},
    "functionCall": {"id": _TEXT, "name": _TEXT, "args": _STRUCT},
    "functionResponse": _FUNCTION_RESPONSE,
    "executableCode": _STRUCT,
    "codeExecutionResult": _STRUCT,
    "thought": _BOOL,
    "thoughtSignature": _BYTES,
    "videoMetadata": _STRUCT,
    "mediaResolution": _STRUCT,
}
_CONTENT = {"role": _TEXT, "parts": [_PART]}
_TOOL = {
    "functionDeclarations": [
        {
            "name": _TEXT,
            "description": _TEXT,
            "behavior": _TEXT,
            "parameters": _STRUCT,
            "parametersJsonSchema": _ANY,
            "response": _STRUCT,
            "responseJsonSchema": _ANY,
        }
    ],
    "googleSearch": _STRUCT,
    "googleMaps": _STRUCT,
    "codeExecution": _STRUCT,
    "urlContext": _STRUCT,
    "computerUse": _STRUCT,
    "fileSearch": _STRUCT,
}
_THINKING = {"includeThoughts": _BOOL, "thinkingBudget": _INT, "thinkingLevel": _TEXT}
_CONFIG = {
    "stopSequences": [_TEXT],
    "responseMimeType": _TEXT,
    "responseSchema": _STRUCT,
    "responseJsonSchema": _ANY,
    "responseModalities": [_TEXT],
    "thinkingConfig": _THINKING,
    "candidateCount": _INT,
    "maxOutputTokens": _INT,
    "temperature": _NUMBER,
    "topP": _NUMBER,
    "topK": _INT,
    "seed": _INT,
    "presencePenalty": _NUMBER,
    "frequencyPenalty": _NUMBER,
    "responseLogprobs": _BOOL,
    "logprobs": _INT,
    "enableEnhancedCivicAnswers": _BOOL,
    "speechConfig": _STRUCT,
    "imageConfig": _STRUCT,
    "mediaResolution": _TEXT,
}
_FUNCTION_CALLING = {"mode": _TEXT, "allowedFunctionNames": [_TEXT]}
GENERATE = {
    "model": _TEXT,
    "contents": [_CONTENT],
    "systemInstruction": _CONTENT,
    "tools": [_TOOL],
    "toolConfig": {
        "functionCallingConfig": _FUNCTION_CALLING,
        "retrievalConfig": _STRUCT,
        "includeServerSideToolInvocations": _BOOL,
    },
    "safetySettings": [_STRUCT],
    "generationConfig": _CONFIG,
    "cachedContent": _TEXT,
}
COUNT = {"contents": [_CONTENT], "generateContentRequest": GENERATE}
EMBED = {
    "requests": [
        {
            "model": _TEXT,
            "content": _CONTENT,
            "taskType": _TEXT,
            "title": _TEXT,
            "outputDimensionality": _INT,
        }
    ]
}

_INT32 = range(-(2**31), 2**31)
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def find_problem(body: Mapping[str, Any], shape: Shape) -> Problem | None:
    """Return the first field of a body that is unknown or of a wrong type, or None."""
    return next(_problems(body, shape, ()), None)


def place(where: Where) -> str:
    """Return a path in Google's notation: `contents[0].parts[1].inline_data`."""
    text = ""
    for step in where:
        name = step if isinstance(step, int) else _CAPITAL.sub(r"_\1", step).lower()
        text += f"[{name}]" if isinstance(step, int) else f".{name}"
    return text.removeprefix(".")


def _problems(value: object, shape: Shape, where: Where) -> Iterator[Problem]:
    if isinstance(shape, str):
        if not _CHECKS[shape](value):
            yield Problem(where, f"Invalid value at '{place(where)}' ({shape}), {str(value)[:80]}")
    elif isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield Problem(where, f"Invalid value at '{place(where)}', an object is needed")
            return
        for name, inner in value.items():
            if name not in shape:
                at = f" at '{place(where)}'" if where else ""
                what = f'Unknown name "{name}"{at}: Cannot find field.'
                yield Problem((*where, name), f"Invalid JSON payload received. {what}")
            else:
                yield from _problems(inner, shape[name], (*where, name))
    elif not isinstance(value, list):
        yield Problem(where, f"Invalid value at '{place(where)}', an array is needed")
    else:
        for index, inner in enumerate(value):
            yield from _problems(inner, shape[0], (*where, index))


def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        padded = value + "=" * (-len(value) % 4)
        base64.b64decode(padded, altchars=_alternatives(value), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _alternatives(value: str) -> bytes:
    return b"-_" if "-" in value or "_" in value else b"+/"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT32


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    _TEXT: lambda value: isinstance(value, str),
    _BYTES: _is_base64,
    _BOOL: lambda value: isinstance(value, bool),
    _INT: _is_int,
    _NUMBER: _is_number,
    _STRUCT: lambda value: isinstance(value, Mapping),
    _ANY: lambda value: True,
}
