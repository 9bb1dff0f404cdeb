"""The top-level blocks of a document: an immutable sequence that shares unchanged parts.

Every edit would copy a tuple of 10,000 blocks as a whole. This sequence is divided into runs of at
most 128; an edit copies the run that it changes and the short tuple of runs. Each run has an index
of its ids, and of the citations, files, labels and counted blocks in it, so none is ever collected
from all blocks. All versions of a sequence share a mapping from ids to the runs where they were
last; as a run moves when others are cut or joined, it tells only where to look first.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from services.articles.tree.nodes import LABELLED_TYPES, Element, joined_cites, shown_files

_LONGEST_RUN = 128
# Entries of removed elements, beside one for each element, before the shared mapping is made anew.
_MOST_REMOVED = 1_000


class _Run(NamedTuple):
    elements: tuple[Element, ...]
    positions: dict[str, int]
    cites: tuple[str, ...]
    files: frozenset[str]
    # Blocks of types that are counted, and the ids of those with labels.
    counted: tuple[Element, ...]
    labels: dict[str, str]


def _run(elements: tuple[Element, ...]) -> _Run:
    counted = tuple([element for element in elements if element.type in LABELLED_TYPES])
    labels = {
        str(element.content["label"]): element.id
        for element in counted
        if "label" in element.content
    }
    positions = {element.id: position for position, element in enumerate(elements)}
    files = frozenset([file_id for element in elements for file_id in shown_files(element)])
    return _Run(elements, positions, joined_cites(elements), files, counted, labels)


class BlockSequence:
    """An immutable sequence of elements, found by position or by id."""

    __slots__ = ("_last_runs", "_runs", "_starts")

    def __init__(self, elements: Sequence[Element] = ()) -> None:
        self._set(tuple(_cut(tuple(elements))), {})
        self._note_runs(0, len(self._runs))

    def _set(self, runs: tuple[_Run, ...], last_runs: dict[str, int]) -> None:
        self._runs = runs
        self._last_runs = last_runs
        # The start position of each run, followed by the total length.
        self._starts = tuple(accumulate((len(run.elements) for run in runs), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Element]:
        for run in self._runs:
            yield from run.elements

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockSequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # elements hold mappings, which have no hash

    def is_same(self, other: "BlockSequence") -> bool:
        """Return whether the elements of two versions are equal.

        Only runs that they do not share are compared. Equal versions that were cut differently
        count as different.
        """
        return len(self._runs) == len(other._runs) and all(
            run is other_run or run.elements == other_run.elements
            for run, other_run in zip(self._runs, other._runs, strict=True)
        )

    def __getitem__(self, position: int) -> Element:
        """Return the element at a position from 0 to length - 1."""
        run_index = bisect_right(self._starts, position) - 1
        return self._runs[run_index].elements[position - self._starts[run_index]]

    def position_of(self, element_id: str) -> int:
        """Return the position of the element with an id; raise KeyError if there is none."""
        runs = self._runs
        last = self._last_runs.get(element_id, 0)
        # There, or else in one nearby.
        for near in (last, last - 1, last + 1):
            if 0 <= near < len(runs) and element_id in runs[near].positions:
                return self._starts[near] + runs[near].positions[element_id]
        for index, run in enumerate(runs):
            if element_id in run.positions:
                self._last_runs[element_id] = index
                return self._starts[index] + run.positions[element_id]
        raise KeyError(element_id)

    def _note_runs(self, first: int, stop: int) -> None:
        """Note the runs of the elements in some runs."""
        if len(self._last_runs) > 2 * len(self) + _MOST_REMOVED:
            self._last_runs = {}
            first, stop = 0, len(self._runs)
        for index in range(first, stop):
            self._last_runs.update(dict.fromkeys(self._runs[index].positions, index))

    def spliced(self, start: int, stop: int, elements: Sequence[Element]) -> "BlockSequence":
        """Return the sequence with the elements `start:stop` replaced by `elements`."""
        if not self._runs:
            return BlockSequence(elements)
        last = len(self._runs) - 1
        first_run = min(bisect_right(self._starts, start) - 1, last)
        last_run = max(first_run, bisect_left(self._starts, stop) - 1)
        leading = self._runs[first_run].elements[: start - self._starts[first_run]]
        trailing = self._runs[last_run].elements[stop - self._starts[last_run] :]
        sequence = object.__new__(BlockSequence)
        cut = tuple(_cut((*leading, *elements, *trailing)))
        runs = (*self._runs[:first_run], *cut, *self._runs[last_run + 1 :])
        sequence._set(runs, self._last_runs)
        sequence._note_runs(first_run, first_run + len(cut))
        return sequence

    def replaced(self, position: int, element: Element) -> "BlockSequence":
        """Return the sequence with a new state of the element at a position."""
        index = bisect_right(self._starts, position) - 1
        run = _replaced(self._runs[index], position - self._starts[index], element)
        sequence = object.__new__(BlockSequence)
        sequence._runs = (*self._runs[:index], run, *self._runs[index + 1 :])
        sequence._starts = self._starts
        sequence._last_runs = self._last_runs
        return sequence

    def updated(self, changed: Mapping[str, Element]) -> "BlockSequence":
        """Return the sequence with new states of elements, by id; each run is built once."""
        sequence = object.__new__(BlockSequence)
        sequence._set(tuple([_updated(run, changed) for run in self._runs]), self._last_runs)
        return sequence

    def cites(self) -> tuple[str, ...]:
        """Return the ids of all cited references, each once, in order of appearance."""
        return tuple(dict.fromkeys(cite for run in self._runs for cite in run.cites))

    def files(self) -> frozenset[str]:
        """Return the ids of all files that the elements show."""
        return frozenset().union(*[run.files for run in self._runs if run.files])

    def counted(self) -> Iterator[Element]:
        """Yield the blocks of types that are counted, in order."""
        for run in self._runs:
            yield from run.counted

    def has_labels(self) -> bool:
        """Return whether a block has a label."""
        return any(run.labels for run in self._runs)

    def labelled(self, label: str) -> str | None:
        """Return the id of the block with a label, or None."""
        for run in self._runs:
            if label in run.labels:
                return run.labels[label]
        return None

    def citing(self, reference_id: str) -> list[Element]:
        """Return the elements in or below which a reference is cited."""
        return [
            element
            for run in self._runs
            if reference_id in run.cites
            for element in run.elements
            if reference_id in element.cites
        ]


def _replaced(run: _Run, position: int, element: Element) -> _Run:
    old = run.elements[position]
    elements = (*run.elements[:position], element, *run.elements[position + 1 :])
    # Images are counted: all others show no files.
    is_indexed_alike = old.type == element.type and old.cites == element.cites
    if is_indexed_alike and old.type not in LABELLED_TYPES:
        return _Run(elements, *run[1:])
    return _run(elements)


def _updated(run: _Run, changed: Mapping[str, Element]) -> _Run:
    if changed.keys().isdisjoint(run.positions):
        return run
    return _run(tuple([changed.get(element.id, element) for element in run.elements]))


def _cut(elements: tuple[Element, ...]) -> Iterator[_Run]:
    if not elements:
        return
    runs = -(-len(elements) // _LONGEST_RUN)
    size = -(-len(elements) // runs)
    for start in range(0, len(elements), size):
        yield _run(elements[start : start + size])
