"""The table of verdicts: what becomes of each part of a request at each kind of provider, and of
each part of an answer and of each event of a stream for the caller of each dialect.

It is in `verdicts/*.toml`, one line a path, sorted. Rows of parts that only newer SDKs than the
installed ones have are in files that end in `_of_newer_sdks`; the update of an SDK moves them. An
object's line is about the object with the fields that it needs alone, or with its last one. A line
has a verdict for each kind of provider or caller, in the order of `COLUMNS`, or one for all of
them:

=============  ===================================================================================
`passes`       it arrives as it is, in the same place
`to PATH`      it is translated: PATH of the provider's body depends on it
`text`         it becomes text, and is named in `x-gateway-adapted`
`dropped`      it does not arrive, and is named in `x-gateway-dropped`
`refused`      400 with its name; of an answer, 502, or an error event
`ours`         the gateway itself does what it says
`needless`     it does not arrive, and no answer is another without it
=============  ===================================================================================
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# The kinds of providers that a dialect is sent to; the first one has the dialect itself.
KINDS: Mapping[str, Sequence[str]] = {
    "chat": ("openai", "compatible", "anthropic", "gemini", "bedrock"),
    "messages": ("anthropic", "openai", "compatible", "gemini", "bedrock"),
    "responses": ("responses", "compatible", "anthropic", "gemini", "bedrock"),
}
# The callers of a provider's whole answers, by its dialect.
CALLERS: Mapping[str, Sequence[str]] = {
    "answers_of_chat": ("chat", "messages", "responses"),
    "answers_of_messages": ("messages", "chat", "responses"),
    "answers_of_responses": ("responses",),
    "answers_of_gemini": ("chat", "messages", "responses"),
}
# The callers of a provider's streams, by its dialect.
LISTENERS: Mapping[str, Sequence[str]] = {
    "events_of_chat": ("chat", "messages", "responses"),
    "events_of_messages": ("messages", "chat", "responses"),
    "events_of_responses": ("responses",),
}
COLUMNS = {**KINDS, **CALLERS, **LISTENERS}
WORDS = frozenset({"passes", "text", "dropped", "refused", "ours", "needless"})
TO = "to "
FOLDER = Path(__file__).parent / "verdicts"


@cache
def verdicts(dialect: str) -> Mapping[str, Sequence[str]]:
    """Return the verdicts of a table by path, in the order of `COLUMNS`."""
    rows: dict[str, Sequence[str]] = {}
    for path in files(dialect):
        for name, verdict in tomllib.loads(path.read_text()).items():
            assert name not in rows, f"{path.name} repeats {name}"
            rows[name] = [verdict] * len(COLUMNS[dialect]) if isinstance(verdict, str) else verdict
    return rows


def newer(dialect: str) -> frozenset[str]:
    """Return the paths that installed SDKs may lack, since newer ones added them."""
    path = FOLDER / f"{dialect}_of_newer_sdks.toml"
    return frozenset(tomllib.loads(path.read_text()) if path.exists() else ())


def files(dialect: str) -> Sequence[Path]:
    """Return the files of a table."""
    return sorted(FOLDER.glob(f"{dialect}*.toml"))


def line(path: str, row: Sequence[str]) -> str:
    """Return the line of a path."""
    if len(set(row)) == 1:
        return f'"{path}" = "{row[0]}"'
    cells = ", ".join(f'"{one}"' for one in row)
    return f'"{path}" = [{cells}]'


def is_verdict(word: str) -> bool:
    """Return whether a word is a verdict."""
    return word in WORDS or (word.startswith(TO) and len(word) > len(TO))


def agrees(verdict: str, outcome: str) -> bool:
    """Return whether what became of a part is what its verdict says."""
    match verdict:
        case "ours":
            return outcome == "nothing" or outcome.startswith(TO)
        case "needless":
            return outcome == "nothing"
    return outcome == verdict
