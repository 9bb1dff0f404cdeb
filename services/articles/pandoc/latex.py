r"""Citations and the list of references in LaTeX: `\cite` and `thebibliography`, by natbib."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from services.articles.bibliography.bibtex import keys_of
from services.articles.bibliography.entries import Reference, text_of
from services.articles.markdown.citations import short_names
from services.articles.pandoc import syntax
from services.articles.pandoc.syntax import Node
from services.articles.tree.nodes import Citation

# Characters of a title that stands for the names of authors.
_SHORT_TITLE = 40
_YEAR = re.compile(r"-?\d{4}", re.ASCII)
_NO_YEAR = "n.d."
# Characters that mean something to TeX, or would end an argument.
_SPECIAL = re.compile(r"[\\{}$&#_%~^\[\]]")
_ESCAPES = {
    **{one: f"\\{one}" for one in "{}$&#_%"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"[": "{[}", "]": "{]}"},
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class LatexCitations(NamedTuple):
    """How a document cites in LaTeX.

    Attributes:
        keys: keys of its references, by their ids; those of its bibliography in BibTeX.
        has_years: whether citations have names and years, not numbers.
    """

    keys: Mapping[str, str]
    has_years: bool = False

    @classmethod
    def of(cls, references: Iterable[Any], *, has_years: bool) -> "LatexCitations":
        """Return how a document with these references cites."""
        return cls(keys_of(references), has_years)

    def package(self) -> str:
        """Return the line of the preamble that loads the package."""
        options = "round" if self.has_years else "numbers,square"
        return f"\\usepackage[{options}]{{natbib}}"

    def cite(self, cited: Sequence[Citation], *, is_argument: bool) -> Node:
        """Return a citation.

        Words before the first reference and after the last belong to the whole citation; with words
        elsewhere, each reference is cited for itself in common brackets.

        Args:
            cited: the cited references.
            is_argument: whether it stands in an argument, which its own brackets would end.
        """
        latex = self._cite(cited)
        return _raw(f"{{{latex}}}" if is_argument and "[" in latex else latex)

    def _cite(self, cited: Sequence[Citation]) -> str:
        first, last = cited[0], cited[-1]
        is_between = any(_after(one) for one in cited[:-1]) or any(one.prefix for one in cited[1:])
        if not is_between:
            command = "citep" if self.has_years else "cite"
            command = "citet" if first.narrative else command
            keys = [self.keys[one.id] for one in cited]
            return _command(command, first.prefix, _after(last), keys)
        each = [_command("citealp", one.prefix, _after(one), [self.keys[one.id]]) for one in cited]
        return f"\\citetext{{{'; '.join(each)}}}"

    def entries(self, entries: Iterable[tuple[Any, Sequence[Node]]]) -> Iterator[Node]:
        """Yield the list of references, each with its text."""
        yield syntax.node("RawBlock", "latex", "\\begin{thebibliography}{99}")
        labels: Counter[tuple[str, str]] = Counter()
        for reference, text in entries:
            names, year = _names(reference), _year(reference)
            number = labels[names, year]
            labels[names, year] += 1
            if number:
                year += _LETTERS[number % len(_LETTERS)]
            key = self.keys[str(reference["id"])]
            label = f"\\bibitem[{{{_text(names)}}}({year})]{{{key}}} "
            yield syntax.para([_raw(label), *text])
        yield syntax.node("RawBlock", "latex", "\\end{thebibliography}")


def _command(name: str, before: str, after: str, keys: Sequence[str]) -> str:
    notes = f"[{_text(before)}]" if before.strip() else ""
    if notes or after:
        notes += f"[{_text(after)}]"
    return f"\\{name}{notes}{{{','.join(keys)}}}"


def _text(text: str) -> str:
    """Return a text on one line in which no character is a command."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], " ".join(text.split()))


def _after(cited: Citation) -> str:
    return ", ".join(filter(None, (cited.locator.strip(), cited.suffix.strip())))


def _names(reference: Reference) -> str:
    title = text_of(reference.get("title", "")) or str(reference["id"])
    return " ".join((short_names(reference) or title[:_SHORT_TITLE]).split())


def _year(reference: Reference) -> str:
    year = _YEAR.match(text_of(reference.get("year", "")) or text_of(reference.get("date", "")))
    return year[0] if year else _NO_YEAR


def _raw(latex: str) -> Node:
    return syntax.node("RawInline", "latex", latex)
