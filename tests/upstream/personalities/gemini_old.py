"""An older deployment of Google's API, which refuses the fields that were added later.

Source: error messages of Google's API as reported by its users.
"""

from collections.abc import Iterator
from typing import Any

from tests.upstream.gemini_shape import place
from tests.upstream.personalities.base import Body, Json, Personality, RefusedError, objects

Where = tuple[str | int, ...]

_CONFIG = frozenset({"presencePenalty", "frequencyPenalty", "seed", "responseModalities"})
_THINKING = frozenset({"thinkingLevel"})
_KEYWORDS = frozenset({"minItems", "maxItems"})


def _unknown(body: Body) -> Iterator[Where]:
    """Yield the paths of the fields that are not known."""
    config = body.get("generationConfig") or {}
    for name in config.keys() & _CONFIG:
        yield ("generationConfig", name)
    for name in (config.get("thinkingConfig") or {}).keys() & _THINKING:
        yield ("generationConfig", "thinkingConfig", name)
    for index, content in objects(body.get("contents")):
        for number, part in objects(content.get("parts")):
            at: Where = ("contents", index, "parts", number)
            for name in ("functionCall", "functionResponse"):
                if "id" in (part.get(name) or {}):
                    yield (*at, name, "id")
    for index, tool in objects(body.get("tools")):
        for number, function in objects(tool.get("functionDeclarations")):
            schema = function.get("parametersJsonSchema")
            at = ("tools", index, "functionDeclarations", number, "parametersJsonSchema")
            for inner in _keywords(schema):
                yield (*at, *inner)


def _keywords(schema: Any) -> Iterator[Where]:
    if not isinstance(schema, dict):
        return
    for name in schema.keys() & _KEYWORDS:
        yield (name,)
    # A map is a list of entries in protobuf.
    for index, inner in enumerate((schema.get("properties") or {}).values()):
        for where in _keywords(inner):
            yield ("properties", index, "value", *where)


def _older(body: Body) -> Body:
    """Refuse the fields of a body that are not known, all of them at once."""
    lines = []
    for *at, name in sorted(_unknown(body), key=str):
        below = f" at '{place(tuple(at))}'" if at else ""
        what = f'Unknown name "{name}"{below}: Cannot find field.'
        lines.append(f"Invalid JSON payload received. {what}")
    if lines:
        raise _refused("\n".join(lines))
    return body


def _without_penalties(body: Body) -> Body:
    if not {"presencePenalty", "frequencyPenalty"}.isdisjoint(body.get("generationConfig") or ()):
        raise _refused("Penalty is not enabled for models/echo")
    return body


def _refused(words: str) -> RefusedError:
    error: Json = {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}
    return RefusedError(400, words, {"error": error})


GEMINI_OLD = Personality(
    "gemini-old",
    "an older deployment: no penalties, seed, thinking levels or call ids",
    dialect="gemini",
    convert_request=_older,
)
GEMINI_LITE = Personality(
    "gemini-lite",
    "a model without penalties",
    dialect="gemini",
    convert_request=_without_penalties,
)
