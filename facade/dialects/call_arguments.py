"""Arguments of a call as the JSON of an object, for dialects that require one."""

import json

import orjson

from services.common.text.lenient_json import parse_leniently


def arguments_object(text: str) -> object:
    """Return the arguments of a call as an object.

    Models sometimes write malformed JSON, and token limits truncate it. The fallback follows
    Anthropic's documentation of fine-grained tool streaming.
    """
    if not text:
        return {}
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        parsed = parse_leniently(text.encode())
        text = json.dumps(parsed, ensure_ascii=False) if isinstance(parsed, dict) else text
    # Keep the original text, for numbers beyond 64 bits or of many digits.
    return orjson.Fragment(text) if isinstance(parsed, dict) else {"INVALID_JSON": text}
