"""What callers of other dialects receive of fields that only Anthropic's answers have. Pure.

Source: docs.claude.com, "Citations", "Web search tool", "Handling stop reasons".
"""

from collections.abc import Iterable, Iterator

from gateway.conversation.v1.conversation_pb2 import Block, Citation
from services.inference.providers.anthropic.parts import Json, block_of

_HTTP = ("http://", "https://")
_MAX_QUOTE = 150  # as in `Citation`


def page_cited(citation: object) -> Citation | None:
    """Return a citation of a page, without its range; None for that of any other source."""
    match citation:
        case {"url": str(url), **fields} | {"source": str(url), **fields}:
            pass
        case _:
            return None
    if not url.startswith(_HTTP):
        return None
    title, quote = (_text(fields.get(name)) for name in ("title", "cited_text"))
    return Citation(url=url, title=title, quote=quote[:_MAX_QUOTE])


def with_citations(fields: Json) -> Block:
    """Return a content block, in which a text has the pages that it cites as citations."""
    given = fields.get("citations")
    if fields.get("type") != "text" or not isinstance(given, list):
        return block_of(fields)
    pages = [(one, page_cited(one)) for one in given]
    others = [one for one, page in pages if page is None]
    block = block_of({**fields, "citations": others or None})
    block.citations.extend(of_text((page for _, page in pages if page), len(block.text)))
    return block


def of_text(citations: Iterable[Citation], length: int) -> Iterator[Citation]:
    """Yield citations with the range of all of their text, if it is not empty."""
    for citation in citations if length else ():
        citation.end_index = length
        yield citation


def explanation_in(stop_details: object) -> str:
    """Return why an answer was refused, in words; "" if that is not told."""
    match stop_details:
        case {"explanation": str(explanation)}:
            return explanation
    return ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
