"""Find how long a text of the request may be, in an error response that calls it too long. Pure.

Ids are replaced by shorter ones; a description or the name of an end user is cut. The names of
tools are not, as callers know them by these.
"""

import re

_STEP = r"(?:\$?[A-Za-z_][\w$-]{0,63}|\d+)"
_PATH = rf"(?P<path>{_STEP}(?:\.{_STEP}|\[\d+\]){{1,40}}|{_STEP})"
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI: Invalid 'input[2].id': string too long. Expected a string with maximum length 64
        rf"'{_PATH}': string too long\. Expected a string with maximum length (?P<bound>\d{{1,6}})",
        # Anthropic: tools.0.custom.description: String should have at most 1024 characters
        rf"(?<![\w.]){_PATH}: String should have at most (?P<bound>\d{{1,6}}) characters",
        rf"(?<![\w.]){_PATH}: ensure this value has at most (?P<bound>\d{{1,6}}) characters",
        # Mistral, vLLM: "loc": ["body", "user"], "msg": "String should have at most 64 characters"
        r"""['"]loc['"]: ?[\[(](?P<steps>[^\])]{1,300})[\])].{0,60}should have at most """
        r"(?P<bound>\d{1,6}) characters",
        # xAI, Fireworks: `user` must be at most 64 characters
        rf"[`'\"]{_PATH}[`'\"] (?:must be (?:at most|no (?:more|longer) than)|exceeds the maximum "
        r"length of|is too long \(max(?:imum)?:?) ?(?P<bound>\d{1,6})(?: characters)?",
    )
)
_INDEX = re.compile(r"\[\d+\]|\.\d+(?=\.|$)")
_QUOTED = re.compile(r"['\"]([^'\"]{1,64})['\"]|(\d+)")
IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "item_id"})
# Texts of which the beginning is enough.
_CUT = frozenset({"description", "user", "safety_identifier", "prompt_cache_key", "user_id"})
# No server has a shorter bound on such a text.
_LEAST = 16
SEPARATOR = "<="


def refused_length(words: str) -> str:
    """Return the path of a text that is too long with its bound, or "".

    Such as `tools[].function.description<=1024`, with `[]` for any index.
    """
    for wording in _WORDINGS:
        match = wording.search(words)
        if match is None:
            continue
        groups = match.groupdict()
        path = groups.get("path") or ""
        if steps := groups.get("steps"):
            names = [name or index for name, index in _QUOTED.findall(steps)]
            path = ".".join(names[1:] if names[:1] == ["body"] else names)
        path, bound = _INDEX.sub("[]", path), int(match["bound"])
        last = path.rpartition(".")[2]
        is_metadata = path.startswith("metadata.")
        if bound >= _LEAST and (last in IDS or last in _CUT or is_metadata):
            return f"{path}{SEPARATOR}{bound}"
    return ""
