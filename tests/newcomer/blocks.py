"""The blocks of code in the documents, in their order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.documents import ROOT

# Languages of blocks that are run; all others are data, or what a command prints.
RUN = frozenset({"sh", "python", "js"})
DATA = frozenset({"toml", "json", "yaml", "text"})
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?"
    r"^[ ]*```(?P<language>[a-z]*)\n(?P<text>.*?)^[ ]*```$",
    re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code.

    Attributes:
        place: the document and the number of the block's first line.
        language: "" if the block names none.
        text: what is pasted.
        reason: why the block is not run, from the comment in front of it; "" if it is run.
    """

    place: str
    language: str
    text: str
    reason: str = ""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.reason


def blocks(document: str) -> Sequence[Block]:
    """Return the blocks of a document, by its path from the root."""
    text = (ROOT / document).read_text()
    return [
        Block(
            f"{document}:{text.count(chr(10), 0, match.start('text')) + 1}",
            match["language"],
            match["text"],
            match["reason"] or "",
        )
        for match in _BLOCK.finditer(text)
    ]
