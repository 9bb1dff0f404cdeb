"""The content of an answer, without differences between its provider's own JSON and the same
translated that do not matter: formatting, and

- of chat completions, when they were created;
- what is null, and an empty list of annotations;
- details of usage that are zero.

That is all of it: whatever else differs is a fault.
"""

from typing import Any

import orjson

Json = dict[str, Any]


def completion_told(body: bytes) -> Json:
    """Return what a chat completion says."""
    completion = _without_nulls(orjson.loads(body))
    assert isinstance(completion.pop("created"), int)
    completion["choices"] = [_choice_told(choice) for choice in completion["choices"]]
    usage = completion["usage"] = _without_nulls(completion["usage"])
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        usage[name] = {key: value for key, value in (usage.get(name) or {}).items() if value}
    return completion


def _choice_told(choice: Json) -> Json:
    message = _without_nulls(choice["message"])
    if message.get("annotations") == []:
        del message["annotations"]
    return _without_nulls({**choice, "message": message})


def message_told(body: bytes) -> Json:
    """Return what a message says."""
    message = _without_nulls(orjson.loads(body))
    message["content"] = [_without_nulls(block) for block in message["content"]]
    usage = message["usage"] = _without_nulls(message["usage"])
    if usage.get("output_tokens_details") == {"thinking_tokens": 0}:
        del usage["output_tokens_details"]
    return message


def _without_nulls(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
