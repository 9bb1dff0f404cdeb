"""Find the fields that an error response rejects, by their places in the request. Pure.

Servers name a field that they do not know by its path, each in its own form. A path here has the
names of the fields from the body down, joined by dots, with `[]` for any index:
`tools[].function.strict`. It may contain names that are not in the request, such as the kind of a
message or a block (`messages[].user.content[].text.x`), as servers built on pydantic add them.
"""

import re
from collections.abc import Iterator

_NAME = r"\$?[A-Za-z_][\w$-]{0,63}"
_STEP = rf"(?:{_NAME}|\d+)"
_PATH = rf"{_STEP}(?:\.{_STEP}|\[\d+\]){{0,40}}"
_INNER_PATH = rf"{_STEP}(?:\.{_STEP}|\[\d+\]){{1,40}}"
_QUOTE = r"""[`'"]?"""
_QUOTED_NAMES = rf"{_QUOTE}{_PATH}{_QUOTE}(?:, ?(?:and )?{_QUOTE}{_PATH}{_QUOTE}){{0,20}}"
_EXTRA = r"(?:Extra inputs are not permitted|extra fields not permitted)"
# Each has the groups `path`, or `paths` for a list, and maybe `place`, the path of their object.
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Anthropic: tools.0.custom.x: Extra inputs are not permitted
        rf"(?<![\w.])(?P<path>{_PATH}): {_EXTRA}",
        # NVIDIA: body -> x\n  Extra inputs are not permitted
        rf"\bbody(?P<arrows>(?: -> {_STEP}){{1,40}})\s+{_EXTRA}",
        # Fireworks: Extra inputs are not permitted, field: 'messages[1].x', value: …
        rf"{_EXTRA},? field: {_QUOTE}(?P<path>{_PATH})",
        # OpenAI: Unknown parameter: 'tools[0].x'. Unrecognized request argument supplied: x
        # NVIDIA: Unsupported parameter(s): `x`, `y`
        r"(?:unknown|unrecogni[sz]ed|unsupported) (?:request )?(?:parameter|argument)(?:\(s\)|s)?"
        rf"(?: supplied)?:? (?P<paths>{_QUOTED_NAMES})",
        # Groq, Cerebras: 'messages.1' : property 'x' is unsupported
        rf"(?:'(?P<place>{_PATH})' ?: ?)?property '(?P<path>{_PATH})' is unsupported",
        # jsonschema: Additional properties are not allowed ('x' was unexpected) - 'messages.1'
        rf"\((?P<paths>{_QUOTED_NAMES}) (?:was|were) unexpected\)(?: - '(?P<place>{_PATH})')?",
        # Bedrock: #/messages/0: extraneous key [x] is not permitted
        rf"#(?P<pointer>(?:/{_STEP}){{0,40}}): extraneous key \[(?P<path>{_PATH})\]",
        # Google: Unknown name "x" at 'generation_config': Cannot find field.
        rf"""Unknown name \\?"(?P<path>{_NAME})\\?"(?: at '(?P<place>{_PATH})')?: Cannot find""",
        # Rust and Go: tools[0]: unknown field `x`, expected …
        rf"""(?:(?<![\w.])(?P<place>{_INNER_PATH}): )?unknown field \\?[`'"](?P<path>{_PATH})""",
        # xAI: Argument not supported on this model: presencePenalty
        rf"argument not supported on this model: (?P<path>{_PATH})",
        rf"does not support (?:the )?(?:parameter|argument)s?:? [\[{{(]?{_QUOTE}(?P<path>{_PATH})",
    )
)
# pydantic: "loc": ["body", "messages", 1, "assistant", "x"], or the same in Python's syntax.
_LOCATION = re.compile(
    r"""['"]loc['"]:\s*[\[(]\s*(?P<steps>['"][^\])]{1,400})[\])](?=(?P<after>(?:(?!['"]loc).){0,120}))""",
    re.DOTALL,
)
_LOCATION_STEP = re.compile(r"""['"]([^'"]{1,64})['"]|(\d+)""")
# Words of pydantic about a value, where the field is known.
_OF_A_VALUE = re.compile(
    r"should |required|must |not a valid|greater_than|less_than", re.IGNORECASE
)
_A_PATH = re.compile(_PATH)
_INDEX = re.compile(r"\[\d*\]|\.\d+(?=\.|$)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Fields of the body that change the meaning of an answer.
_ESSENTIAL = frozenset(
    {
        *("model", "messages", "system", "input", "instructions", "prompt", "contents", "stream"),
        *("system_instruction", "tools", "functions", "function_call", "tool_choice", "n"),
        *("tool_config", "response_format", "output_format", "output_config", "text", "stop"),
        *("logprobs", "top_logprobs", "logit_bias", "modalities", "audio", "max_tokens"),
        *("max_completion_tokens", "max_output_tokens", "max_tool_calls", "mcp_servers"),
        *("container", "previous_response_id", "conversation", "background", "fallbacks"),
        *("generation_config", "include", "suffix", "echo", "best_of", "dimensions", "models"),
        *("candidate_count", "response_modalities", "response_mime_type", "extra_body"),
    }
)
# Words in the names of other such fields.
_ESSENTIAL_WORDS = re.compile(
    r"guided|grammar|schema|format|regex|structured|stop|bias|safety_settings|guardrail|moderation"
    r"|search|plugin|tool|logprob|document|citation|max_",
    re.IGNORECASE,
)
# Fields that hold others, of which some may be left out.
_HOLDERS = {
    "tools": frozenset(
        {"strict", "cache_control", "defer_loading", "input_examples", "eager_input_streaming"}
    ),
    "tool_choice": frozenset({"disable_parallel_tool_use"}),
    "response_format": frozenset({"strict"}),
    "output_config": frozenset({"effort", "task_budget"}),
    "text": frozenset({"verbosity", "strict"}),
    "functions": frozenset({"strict"}),
}
# Fields of a tool that are essential, in any dialect, with those of servers' own tools.
_OF_EVERY_TOOL = frozenset(
    {
        *("type", "name", "description", "parameters", "input_schema", "function", "custom"),
        *("function_declarations", "parameters_json_schema", "format", "syntax", "definition"),
        *("grammar", "allowed_domains", "blocked_domains", "max_uses", "user_location", "filters"),
        *("allowed_callers", "vector_store_ids", "container", "allowed_tools", "server_url"),
        *("server_label", "require_approval", "headers", "authorization", "mcp_server_name"),
        *("display_width_px", "display_height_px", "environment", "max_content_tokens"),
    }
)
# Fields with JSON Schemas.
_SCHEMAS = frozenset(
    {"input_schema", "parameters", "parameters_json_schema", "schema", "response_schema"}
)
# Keywords of JSON Schema that may be left out of a tool's parameters: the model sees them as
# words of the description, and the caller checks the arguments.
KEYWORDS = frozenset(
    {
        *("pattern", "format", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties", "propertyNames", "patternProperties", "contains"),
        *("minContains", "maxContains", "default", "examples", "example", "title", "$schema"),
        *("$id", "$comment", "$anchor", "deprecated", "readOnly", "writeOnly", "not", "if"),
        *("then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedProperties", "unevaluatedItems", "contentEncoding", "contentMediaType"),
        *("additionalProperties", "additionalItems", "nullable", "const", "enumDescriptions"),
        *("markdownDescription", "id"),
    }
)
_KEYWORD = rf"(?P<keyword>{'|'.join(re.escape(one) for one in sorted(KEYWORDS, key=len)[::-1])})"
_KEYWORD_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI: In context=('properties', 'a'), 'minLength' is not permitted.
        rf"[`'\"]{_KEYWORD}[`'\"] (?:is|are) (?:not (?:permitted|supported|allowed)|unsupported)",
        rf"(?:property|keyword|field|key) [`'\"]{_KEYWORD}[`'\"] (?:is|are) not supported",
        # Fireworks, Cerebras: unsupported keyword: propertyNames
        r"(?:unsupported|unknown|unrecogni[sz]ed|invalid|disallowed) (?:json ?)?(?:schema )?"
        rf"(?:keyword|key|field|propert(?:y|ies))s?:? ?[\[{{(]?[`'\"]?{_KEYWORD}\b",
        rf"(?:does not|doesn't) support (?:the )?[`'\"]?{_KEYWORD}\b[`'\"]? (?:keyword|in)",
    )
)
_OF_SCHEMAS = re.compile(r"schema|function|tool|parameters|in context=", re.IGNORECASE)

# The prefix of a refused keyword.
KEYWORD = "schema."
# The prefix of a refused beta feature, and all of them.
BETA = "betas."
ALL_BETAS = "betas.*"
_BETA_WORDS = re.compile(
    r"Unexpected (?:value\(s\)|beta header|beta) "
    r"(?P<values>[`\"'][\w.-]{1,80}[`\"'](?:, ?[`\"'][\w.-]{1,80}[`\"']){0,40})"
)
_BETA_VALUE = re.compile(r"[\w.-]{1,80}")
_NO_BETA = re.compile(r"\binvalid beta flag\b", re.IGNORECASE)


def refused_betas(words: str) -> Iterator[str]:
    """Yield the beta features that an error rejects, after `BETA`."""
    if match := _BETA_WORDS.search(words):
        for value in _BETA_VALUE.findall(match["values"]):
            yield BETA + value
    elif _NO_BETA.search(words):
        # Bedrock does not tell which one.
        yield ALL_BETAS


def refused_keyword(words: str) -> str:
    """Return the keyword of JSON Schema that an error rejects, after `KEYWORD`, or ""."""
    if not _OF_SCHEMAS.search(words):
        return ""
    for wording in _KEYWORD_WORDINGS:
        if match := wording.search(words):
            lower = match["keyword"].lower()
            return KEYWORD + next(one for one in KEYWORDS if one.lower() == lower)
    return ""


def refused_paths(param: str, words: str) -> list[str]:
    """Return the paths of the fields that an error calls unknown, in their order.

    Args:
        param: the error's `param`, or "".
        words: its message.
    """
    paths = [_of_location(match) for match in _LOCATION.finditer(words)]
    for wording in _WORDINGS:
        for match in wording.finditer(words):
            paths += _of_match(match.groupdict())
    if not any(paths) and "." in param and _A_PATH.fullmatch(param):
        paths.append(param)
    return [*dict.fromkeys(_normal(path) for path in paths if path)]


def _of_match(groups: dict[str, str | None]) -> Iterator[str]:
    place = groups.get("place") or ""
    if pointer := groups.get("pointer"):
        place = pointer.strip("/").replace("/", ".")
    if arrows := groups.get("arrows"):
        yield arrows.removeprefix(" -> ").replace(" -> ", ".")
        return
    for name in _A_PATH.findall(groups.get("paths") or groups.get("path") or ""):
        # Cerebras repeats the place in the name.
        yield f"{place}.{name}" if place and not name.startswith(place) else name


def _of_location(match: re.Match[str]) -> str:
    if _OF_A_VALUE.search(match["after"]):
        return ""
    steps = [name or index for name, index in _LOCATION_STEP.findall(match["steps"])]
    return ".".join(steps[1:] if steps[:1] == ["body"] else steps)


def _normal(path: str) -> str:
    """Return a path with `[]` for indexes, and names of the body in `snake_case`."""
    path = _INDEX.sub("[]", path)
    first, dot, others = path.partition(".")
    return snake(first) + dot + others


def snake(name: str) -> str:
    """Return a name in `snake_case`."""
    return _CAMEL.sub("_", name).lower() if _CAMEL.search(name) else name


def steps_of(path: str) -> list[str]:
    """Return the names in a path, without indexes."""
    return [step.removesuffix("[]") for step in path.split(".") if step != "[]"]


def may_leave_out(path: str) -> str:
    """Return the name under which a rejected field is left out of later requests; "" for none.

    A field that changes the meaning of the answer is never left out.
    """
    steps = steps_of(path)
    first, last = steps[0], steps[-1]
    if "cache_control" in steps:
        return ".".join(steps[steps.index("cache_control") :])
    if len(steps) == 1:
        is_essential = first in _ESSENTIAL or _ESSENTIAL_WORDS.search(first)
        return "" if is_essential else first
    if any(step in _SCHEMAS for step in steps[:-1]):
        is_answer = first in ("response_format", "output_config", "text", "generation_config")
        return KEYWORD + last if last in KEYWORDS and not is_answer else ""
    if first in ("messages", "input", "contents", "system"):
        return path
    if first == "tools":
        return "" if snake(last) in _OF_EVERY_TOOL or _ESSENTIAL_WORDS.search(last) else path
    if first in _HOLDERS:
        return path if last in _HOLDERS[first] else ""
    if first in ("generation_config", "thinking", "reasoning"):
        name = snake(last)
        is_essential = name in _ESSENTIAL or _ESSENTIAL_WORDS.search(name)
        return "" if is_essential or name in ("type", "enabled", "effort") else path
    return "" if first in _ESSENTIAL or _ESSENTIAL_WORDS.search(first) else path


# The prefix of a tool whose parameters a server rejects, by its name or its index.
TOOL = "tool."
_TOOL_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI: Invalid schema for function 'x': …; xAI: Invalid schema in tool "x"
        r"invalid (?:json )?schema (?:for|in) (?:the )?(?:function|tool)s? [`'\"]"
        r"(?P<name>[\w.:/-]{1,128})[`'\"]",
        # Anthropic: tools.5.custom.input_schema: JSON schema is invalid
        r"(?<![\w.])tools[.\[](?P<index>\d{1,4})\]?(?:\.(?:custom|function))?"
        r"\.(?:input_schema|parameters)(?![\w-])",
        # Google: GenerateContentRequest.tools[0].function_declarations[5].parameters.…
        r"function_?declarations\[(?P<index>\d{1,4})\]\.parameters",
    )
)


def refused_tool(param: str, words: str) -> str:
    """Return the tool whose parameters an error rejects, after `TOOL`, or ""."""
    text = f"{words} {param}"
    for wording in _TOOL_WORDINGS:
        if match := wording.search(text):
            groups = match.groupdict()
            return TOOL + (groups.get("name") or f"#{groups['index']}")
    return ""
