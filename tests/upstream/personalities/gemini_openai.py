"""Gemini's endpoint in OpenAI's dialect: tool calls are signed, and rejected without a signature.

Source: https://ai.google.dev/gemini-api/docs/openai and …/thought-signatures.
"""

import orjson

from services.sandbox.model.models import SandboxError
from tests.upstream.gemini_rules import NAME, NAME_RULE, OF_CHATS, is_signed
from tests.upstream.personalities.base import (
    ANY_TOOL_NAME,
    COMMON,
    Body,
    Json,
    Personality,
    RefusedError,
    in_choices,
    objects,
    readable,
    thoughts_as,
    tool_names,
)

_READ = COMMON | {"max_completion_tokens", "n", "parallel_tool_calls", "seed"}
_SIGNED = {"google": {"thought_signature": OF_CHATS}}
_silent = thoughts_as("")


def _convert_request(body: Body) -> Body:
    for index, message in _since_the_user(body):
        calls = [call for _, call in objects(message.get("tool_calls"))]
        if calls and not _is_signed(calls[0]):
            name = (calls[0].get("function") or {}).get("name")
            raise _refused(
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                f"degraded model performance. Additional data, function call `default_api:{name}` "
                f", position {index + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
    wrong = [
        f"* GenerateContentRequest.tools[0].function_declarations[{index}].name: {NAME_RULE}\n"
        for index, name in tool_names(body)
        if not NAME.fullmatch(name)
    ]
    if wrong:
        raise _refused("".join(wrong))
    return readable(body, _READ)


def _is_signed(call: Json) -> bool:
    match call:
        case {
            "id": id,
            "function": {"name": name, "arguments": str(arguments)},
            "extra_content": {"google": {"thought_signature": signature}},
        }:
            try:
                args = orjson.loads(arguments)
            except orjson.JSONDecodeError:
                args = {}
            function = {"id": id, "name": name, "args": args}
            part = {"functionCall": function, "thoughtSignature": signature}
            return is_signed(part)
    return False


def _since_the_user(body: Body) -> list[tuple[int, Json]]:
    messages = list(objects(body.get("messages")))
    users = [place for place, (_, message) in enumerate(messages) if message.get("role") == "user"]
    return messages[users[-1] :] if users else messages


def _convert_answer(answer: Json) -> Json:
    return in_choices(answer, _convert_message)


def _convert_message(message: Json) -> Json:
    message = {**_silent(message)}
    if message.get("tool_calls"):
        # Only the first of parallel calls is signed.
        first, *others = message["tool_calls"]
        if "id" in first and first.get("index", 0) == 0:
            first = {**first, "extra_content": _SIGNED}
        message["tool_calls"] = [first, *others]
    return message


def _refused(message: str) -> RefusedError:
    return RefusedError(400, message, _error_list(400, message))


def _error_list(status: int, message: str) -> list[Json]:
    kind = "INVALID_ARGUMENT" if status == 400 else "INTERNAL"
    return [{"error": {"code": status, "message": message, "status": kind}}]


def _failure(error: SandboxError, body: Json) -> list[Json]:
    return _error_list(error.status, error.message)


GEMINI_OPENAI = Personality(
    "gemini-openai",
    "calls of tools are signed (extra_content.google.thought_signature) and refused without; "
    "errors come in a list",
    model_aliases={"gemini-3-pro-preview": "echo"},
    convert_request=_convert_request,
    convert_answer=_convert_answer,
    failure=_failure,
    tool_name=ANY_TOOL_NAME,
)
