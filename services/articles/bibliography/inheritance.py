"""Fields that an entry of a .bib file has from other entries, by `crossref` and `xdata`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from services.articles.bibliography.entries import Omission, SyntaxProblem

# Characters that entries may have from others: an entry can be named by all of them.
_MAX_INHERITED = 8 << 20
# Entries of this type are no references, but fields of those that name them.
_XDATA = "xdata"
# Fields that are about an entry itself.
_OWN = frozenset(
    "abstract annotation annote author chapter comment crossref doi eprint eid entryset".split()
    + "file gender ids isbn13 key keywords label note numpages options owner pages".split()
    + "pagetotal related relatedtype shorthand shorttitle sortkey timestamp title subtitle".split()
    + "titleaddon url urldate xdata xref".split()
)
# Fields of the whole that its parts have under other names, by the type of the part.
_OF_BOOK = {
    "title": "booktitle",
    "subtitle": "booksubtitle",
    "titleaddon": "booktitleaddon",
    "author": "bookauthor",
}
_OF_JOURNAL = {"title": "journaltitle", "subtitle": "journalsubtitle"}
_RENAMED: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("inbook", "bookinbook", "suppbook", "incollection"), _OF_BOOK),
    **dict.fromkeys(("suppcollection", "inreference", "inproceedings", "conference"), _OF_BOOK),
    **dict.fromkeys(("article", "suppperiodical"), _OF_JOURNAL),
}
# Of these, an entry has those of one kind alone.
_DATES = ({"date"}, {"year", "month", "day"})


class Entry(NamedTuple):
    """An entry: its type, its key, and its fields as they are written."""

    kind: str
    key: str
    fields: Mapping[str, str]


def inherited(entries: Sequence[Entry], omitted: list[Omission]) -> Iterator[Entry]:
    """Yield entries with the fields that they have from others; those of type `xdata` go.

    Args:
        entries: all entries of a file.
        omitted: gathers the names of entries that are not there.

    Raises:
        SyntaxProblem: entries would have too many characters from others.
    """
    yield from _Inheritance(entries, omitted).entries()


class _Inheritance:
    def __init__(self, entries: Sequence[Entry], omitted: list[Omission]) -> None:
        self._entries = entries
        self._omitted = omitted
        self._by_key: dict[str, Entry] = {}
        for entry in entries:
            self._by_key.setdefault(entry.key, entry)
        self._left = _MAX_INHERITED

    def entries(self) -> Iterator[Entry]:
        for entry in self._entries:
            if entry.kind == _XDATA:
                continue
            if "xdata" not in entry.fields and "crossref" not in entry.fields:
                yield entry
                continue
            fields = dict(entry.fields)
            self._add_xdata(entry.key, fields)
            parent = self._by_key.get(fields.get("crossref", "").strip())
            if parent is not None and parent.key != entry.key:
                self._add(fields, self._of_parent(parent, _RENAMED.get(entry.kind, {})))
            yield entry._replace(fields=fields)

    def _add_xdata(self, key: str, fields: dict[str, str]) -> None:
        """Add the fields of the entries that `xdata` names, and of those that these name."""
        waiting = [fields.pop("xdata", "")]
        seen = set()
        while waiting:
            for name in filter(None, (part.strip() for part in waiting.pop().split(","))):
                data = self._by_key.get(name)
                if data is None:
                    self._omitted.append(
                        Omission(key, f"the data of {name[:64]}, which is no entry")
                    )
                elif name not in seen:
                    seen.add(name)
                    waiting.append(data.fields.get("xdata", ""))
                    self._add(fields, {k: v for k, v in data.fields.items() if k != "xdata"})

    def _of_parent(self, parent: Entry, renamed: Mapping[str, str]) -> dict[str, str]:
        fields = dict(parent.fields)
        self._add_xdata(parent.key, fields)
        own = {name: value for name, value in fields.items() if name not in _OWN}
        for name, other in renamed.items():
            if name in fields:
                own.setdefault(other, fields[name])
        return own

    def _add(self, fields: dict[str, str], others: Mapping[str, str]) -> None:
        for mine, theirs in (_DATES, _DATES[::-1]):
            if mine & fields.keys():
                others = {name: value for name, value in others.items() if name not in theirs}
        for name, value in others.items():
            if name not in fields:
                self._left -= len(value)
                if self._left < 0:
                    raise SyntaxProblem("entries have too much from others by crossref or xdata")
                fields[name] = value
