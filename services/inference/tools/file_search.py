"""The gateway tool `file_search`: its limits, and the interface of searches of vector stores."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import orjson

from gateway.conversation.v1.conversation_pb2 import FileResult, FileResults
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool, WebTool
from services.common.errors import GatewayError
from services.common.text.texts import fit

NAME: Final = "file_search"
MAX_QUERIES: Final = 4
_RESULTS: Final = 10
_MOST_RESULTS: Final = 50
# Maximum bytes of the text of a result: of a chunk of the largest size.
_MAX_TEXT: Final = 20_000
_BYTES_A_TOKEN: Final = 4
# Bytes of the text of all results, without a smaller context window.
_MAX_TEXTS: Final = 100_000
_WORDS: Final = (
    "Search the user's files. Returns passages of them, each with the name of its file. Use it for "
    "whatever the files may say, with complete questions or keywords. After each statement that "
    "rests on a file, write the name of the file in square brackets, as in [report.pdf]."
)
_SCHEMA: Final = orjson.dumps(
    {
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MAX_QUERIES,
                "description": "What to search for; several only for different questions.",
            }
        },
        "required": ["queries"],
        "additionalProperties": False,
    }
)


class FoundFile(Protocol):
    """A passage of a file that a search has found."""

    file_id: str
    filename: str
    text: str
    score: float
    attributes: bytes


class FileSearches(Protocol):
    """Searches of the caller's vector stores."""

    async def check(self, store_ids: Sequence[str]) -> None:
        """Check that vector stores exist.

        Raises:
            GatewayError: not_found.
        """
        ...

    async def search(
        self, tool: WebTool, queries: Sequence[str], count: int
    ) -> Sequence[FoundFile]:
        """Return the passages that match queries best, at most `count`.

        Raises:
            GatewayError: not_found; invalid; unavailable.
        """
        ...


def definition() -> Tool:
    """Return the definition of the tool for the model."""
    return Tool(name=NAME, description=_WORDS, input_schema=_SCHEMA)


def queries_of(arguments: str) -> list[str]:
    """Return the queries of a call; none if its arguments are malformed."""
    try:
        fields = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return []
    given: Any = fields.get("queries") if isinstance(fields, dict) else None
    if isinstance(fields, dict) and given is None:
        given = fields.get("query")  # some models write one
    queries = [given] if isinstance(given, str) else given
    if not isinstance(queries, list) or len(queries) > MAX_QUERIES:
        return []
    if not all(isinstance(query, str) and query.strip() for query in queries):
        return []
    return queries


async def search(searches: FileSearches, tool: WebTool, queries: Sequence[str]) -> FileResults:
    """Return the results of a call, within the size that the model's context allows."""
    count = min(tool.max_results or _RESULTS, _MOST_RESULTS)
    left = _MAX_TEXTS
    if tool.HasField("max_content_tokens"):
        left = min(left, tool.max_content_tokens * _BYTES_A_TOKEN)
    results = FileResults()
    for chunk in await searches.search(tool, queries, count):
        text = fit(chunk.text, min(_MAX_TEXT, left))
        if not text:
            break
        left -= len(text.encode())
        results.results.append(
            FileResult(
                file_id=chunk.file_id,
                filename=chunk.filename,
                score=chunk.score,
                text=text,
                attributes=chunk.attributes,
            )
        )
    return results


async def check_vector_stores(request: GenerateRequest, searches: FileSearches | None) -> None:
    """Check that the vector stores of a request exist.

    Raises:
        GatewayError: not_found, with the path of the tool.
    """
    parts = [request]
    if request.HasField("fallback_config"):
        parts += [step.parameters for step in request.fallback_config.steps]
    for part in parts:
        for index, tool in enumerate(part.tools):
            if searches is None or tool.web.kind != WebTool.KIND_FILES:
                continue
            try:
                await searches.check(tool.web.files.vector_store_ids)
            except GatewayError as error:
                path = f"tools[{index}].web.files.vector_store_ids"
                error.param = path
                error.message = f"{path}: {error.message}"
                raise
