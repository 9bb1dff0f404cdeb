"""What callers of other dialects receive of fields that only Anthropic's answers have. Pure.

Source: docs.claude.com, "Citations", "Web search tool", "Handling stop reasons".
"""

from collections.abc import Iterable, Iterator

from gateway.conversation.v1.conversation_pb2 import (
    FINISH_REASON_END_TURN,
    FINISH_REASON_TOOL_USE,
    Block,
    Citation,
)
from gateway.inference.v1.inference_pb2 import Finish
from services.common.messages.notes import note_on_unknown_parts
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
    citations = fields.get("citations")
    if fields.get("type") != "text" or not isinstance(citations, list):
        return block_of(fields)
    pages = [(citation, page_cited(citation)) for citation in citations]
    others = [citation for citation, page in pages if page is None]
    block = block_of({**fields, "citations": others or None})
    block.citations.extend(of_text((page for _, page in pages if page), len(block.text)))
    return block


def of_text(citations: Iterable[Citation], length: int) -> Iterator[Citation]:
    """Yield citations with the range of all of their text, if it is not empty."""
    for citation in citations if length else ():
        citation.end_index = length
        yield citation


class Translation:
    """What callers of other dialects receive of an answer beside the events of its blocks."""

    __slots__ = ("_has_called", "_has_known", "_length", "_pages", "_unknown")

    def __init__(self) -> None:
        self._length = 0  # characters of the open text
        self._pages: list[Citation] = []  # cited by the open text
        self._has_called = False
        self._has_known = False  # whether any block is known to other dialects
        self._unknown: set[str] = set()  # types of the other blocks

    def begin(self, block: Block, kind: str) -> None:
        """Begin a block of a type."""
        self._length = len(block.text)
        if block.HasField("opaque"):
            self._unknown.add(kind)
        else:
            self._has_known = True
            self._has_called = self._has_called or block.HasField("tool_use")

    def end(self, finish: Finish) -> None:
        """Correct the end of an answer with calls: some servers end it like any other."""
        if self._has_called and finish.reason == FINISH_REASON_END_TURN:
            finish.reason = FINISH_REASON_TOOL_USE

    def say(self, text: str) -> None:
        """Add more of the open text."""
        self._length += len(text)

    def takes_citation(self, delta: Json) -> bool:
        """Return whether a delta of the open text cites a page; it is kept until the text ends."""
        page = page_cited(delta.get("citation"))
        if page is not None:
            self._pages.append(page)
        return page is not None

    def end_text(self) -> list[Citation]:
        """Return the citations of the text that ends."""
        citations = [*of_text(self._pages, self._length)] if self._pages else []
        self._pages.clear()
        return citations

    def last_block(self, stop_details: object) -> Block | None:
        """Return a block to add at the end: why the answer was refused, or what it consists of."""
        match stop_details:
            case {"explanation": str(explanation)} if explanation:
                return Block(refusal=explanation)
        note = "" if self._has_known else note_on_unknown_parts(self._unknown)
        return Block(text=note) if note else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
