"""Rules of Google's servers that the discovery document does not express.

Source: the reference of `generateContent`, the pages on function calling, thinking and thought
signatures, and error messages as reported by users.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.sandbox.gemini_wire import sign
from tests.upstream import gemini_shape
from tests.upstream.checks import Problem

Body = Mapping[str, Any]
Where = tuple[str | int, ...]

# The models' signature of calls in OpenAI's dialect, where the arguments follow the signature.
OF_CHATS = "c2FuZGJveCBzaWduYXR1cmU="
# Google's documented placeholders for function calls of other models.
_SKIPPED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", re.ASCII)
NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
    "(a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
    "length of 64."
)
_DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult"),
)
_NEEDED = (
    ("inlineData", "mimeType", "must not be empty."),
    ("fileData", "fileUri", "must not be empty."),
    ("functionCall", "name", "Name cannot be empty."),
    ("functionResponse", "name", "Name cannot be empty."),
)
_RANGES = (
    ("temperature", 0, 2),
    ("topP", 0, 1),
    ("presencePenalty", -2, 2),
    ("frequencyPenalty", -2, 2),
    ("candidateCount", 1, 8),
    ("maxOutputTokens", 1, None),
    ("topK", 1, None),
    ("logprobs", 0, 20),
)
_MAX_STOPS = 5
_MAX_BATCH = 100  # texts to embed
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a "
    "function response turn."
)
_AFTER_CALL = (
    "Please ensure that function response turn comes immediately after a function call turn."
)
_AS_MANY = (
    "Please ensure that the number of function response parts is equal to the number of "
    "function call parts of the function call turn."
)


def is_signed(part: Body) -> bool:
    """Return whether a part has the sandbox's own signature, or a documented placeholder."""
    # Google's clients write bytes in the alphabet for URLs, which its servers read too.
    signature = part["thoughtSignature"].replace("-", "+").replace("_", "/")
    if signature == OF_CHATS or part["thoughtSignature"] in _SKIPPED:
        return True
    if "functionCall" in part:
        return bool(signature == sign(part["functionCall"]))
    # A stream has the signature of a text in an empty part after it.
    return signature in (sign(part.get("text", "")), sign(""))


def generate_problem(body: Body) -> Problem | None:
    """Return the first problem of a body of `generateContent`, or None."""
    return gemini_shape.find_problem(body, gemini_shape.GENERATE) or next(_problems(body), None)


def count_problem(body: Body) -> Problem | None:
    """Return the first problem of a body of `countTokens`, or None."""
    if problem := gemini_shape.find_problem(body, gemini_shape.COUNT):
        return problem
    return next(_contents(body.get("generateContentRequest") or body), None)


def embed_problem(body: Body) -> Problem | None:
    """Return the first problem of a body of `batchEmbedContents`, or None."""
    if problem := gemini_shape.find_problem(body, gemini_shape.EMBED):
        return problem
    if len(body.get("requests") or ()) > _MAX_BATCH:
        what = f"at most {_MAX_BATCH} requests can be in one batch"
        return Problem(("requests",), f"* BatchEmbedContentsRequest.requests: {what}")
    for index, request in enumerate(body.get("requests") or ()):
        if not any(part.get("text") for part in (request.get("content") or {}).get("parts") or ()):
            where = ("requests", index, "content")
            return Problem(where, "* EmbedContentRequest.content: contents is not specified")
    return None


def _problems(body: Body) -> Iterator[Problem]:
    yield from _contents(body)
    yield from _turns(body["contents"])
    yield from _signatures(body["contents"])
    yield from _tools(body)
    yield from _config(body.get("generationConfig") or {})


def _request_problem(where: Where, what: str) -> Problem:
    return Problem(where, f"* GenerateContentRequest.{gemini_shape.place(where)}: {what}")


def _contents(body: Body) -> Iterator[Problem]:
    if not body.get("contents"):
        yield _request_problem(("contents",), "contents is not specified")
        return
    for index, content in enumerate(body["contents"]):
        if content.get("role", "user") not in ("user", "model"):
            yield Problem(("contents", index, "role"), "Please use a valid role: user, model.")
        if not content.get("parts"):
            where: Where = ("contents", index, "parts")
            yield _request_problem(where, "contents.parts must not be empty.")
        for place, part in enumerate(content.get("parts") or ()):
            if sum(name in part for name in _DATA) != 1:
                what = "required oneof field 'data' must have one initialized field"
                yield _request_problem(("contents", index, "parts", place, "data"), what)
            for name, needed, words in _NEEDED:
                if name in part and not part[name].get(needed):
                    yield _request_problem(("contents", index, "parts", place, name, needed), words)


def _turns(contents: Sequence[Body]) -> Iterator[Problem]:
    """Check that function responses directly follow their calls."""
    calls = 0  # of the previous content
    for index, content in enumerate(contents):
        where = ("contents", index)
        called = sum("functionCall" in part for part in content["parts"])
        answered = [part for part in content["parts"] if "functionResponse" in part]
        is_model = content.get("role") == "model"
        if called and (not is_model or not index or contents[index - 1].get("role") == "model"):
            yield Problem(where, _AFTER_USER)
        if answered and not calls:
            yield Problem(where, _AFTER_CALL)
        if calls and len(answered) != calls:
            yield Problem(where, _AS_MANY)
        calls = called
    if calls:
        yield Problem(("contents", len(contents) - 1), _AS_MANY)


def _signatures(contents: Sequence[Body]) -> Iterator[Problem]:
    """Check that the first call of each step of the current turn has its thought signature."""
    started = [
        index
        for index, content in enumerate(contents)
        if content.get("role") != "model"
        and not any("functionResponse" in part for part in content["parts"])
    ]
    current = started[-1] if started else 0
    for index, content in enumerate(contents):
        for place, part in enumerate(content["parts"]):
            if "thoughtSignature" in part and not is_signed(part):
                where = ("contents", index, "parts", place, "thoughtSignature")
                yield Problem(where, "Thought signature is not valid.")
        calls = [one for one in enumerate(content["parts"]) if "functionCall" in one[1]]
        if index > current and calls and "thoughtSignature" not in calls[0][1]:
            place, part = calls[0]
            yield Problem(
                ("contents", index, "parts", place),
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                "degraded model performance. Additional data, function call "
                f"`default_api:{part['functionCall']['name']}` , position {place + 1}.",
            )


def _tools(body: Body) -> Iterator[Problem]:
    names: set[str] = set()
    for index, tool in enumerate(body.get("tools") or ()):
        for place, function in enumerate(tool.get("functionDeclarations") or ()):
            name = function.get("name", "")
            where = ("tools", index, "functionDeclarations", place)
            if not NAME.fullmatch(name):
                yield _request_problem((*where, "name"), NAME_RULE)
            if name in names:
                yield Problem(where, f"Duplicate function declaration found: {name}")
            if "parameters" in function and "parametersJsonSchema" in function:
                yield _request_problem((*where, "parameters"), "only one of parameters may be set")
            names.add(name)
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    mode = config.get("mode", "AUTO")
    at: Where = ("toolConfig", "functionCallingConfig", "mode")
    if mode not in _MODES:
        yield Problem(at, f"Invalid value at '{gemini_shape.place(at)}', \"{mode}\"")
    if config and not names:
        yield Problem(at, "Function calling config is set without function_declarations.")
    allowed = config.get("allowedFunctionNames")
    if allowed and mode not in ("ANY", "VALIDATED"):
        what = "Allowed function names should only be set when the function calling mode is ANY."
        yield Problem(at, what)
    for name in allowed or ():
        if name not in names:
            yield Problem(at, f"Function {name} is not among the function declarations.")


def _config(config: Body) -> Iterator[Problem]:
    for name, low, high in _RANGES:
        value = config.get(name)
        if value is not None and (value < low or (high is not None and value > high)):
            takes = f"in the range [{low}, {high}]" if high is not None else "positive"
            place = gemini_shape.place((name,))
            yield _request_problem(("generationConfig", name), f"{place} must be {takes}.")
    if len(config.get("stopSequences") or ()) > _MAX_STOPS:
        what = f"the number of stop_sequences must be at most {_MAX_STOPS}."
        yield _request_problem(("generationConfig", "stopSequences"), what)
    if "logprobs" in config and not config.get("responseLogprobs"):
        what = "Setting logprobs requires response_logprobs to be true."
        yield _request_problem(("generationConfig", "logprobs"), what)
    for name in ("responseSchema", "responseJsonSchema"):
        if name in config and config.get("responseMimeType") != "application/json":
            what = 'only allowed when response_mime_type is "application/json".'
            yield _request_problem(("generationConfig", name), what)
    thinking = config.get("thinkingConfig") or {}
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        what = "You can only set only one of thinking budget and thinking level."
        yield Problem(("generationConfig", "thinkingConfig"), what)
    if thinking.get("thinkingLevel", "LOW") not in _LEVELS:
        where = ("generationConfig", "thinkingConfig", "thinkingLevel")
        yield Problem(where, f"Invalid value at '{gemini_shape.place(where)}'")
