"""Replacement of a text in leaves by another, of which only what differs is replaced."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from services.articles.tree.inline_markdown import InlineText
from services.articles.tree.nodes import OBJECT, Leaf

_PLAIN = Leaf("")


class Splice(NamedTuple):
    """The difference of a text and the text that takes its place.

    Attributes:
        text: the text to find.
        start: number of equal characters at the beginning.
        end: number of equal characters at the end.
        leaves: what takes the place of the characters between.
        keeps_marks: whether these get the marks of what was there.
        objects: the notes and references to blocks in the text, which it is only found with.
    """

    text: str
    start: int
    end: int
    leaves: tuple[Leaf, ...]
    keeps_marks: bool
    objects: tuple[Leaf, ...] = ()

    @classmethod
    def between(cls, old: InlineText, new: InlineText) -> "Splice":
        """Return the difference of two texts and their marks."""
        numbers: dict[Leaf, int] = {}
        old_characters, new_characters = _characters(old, numbers), _characters(new, numbers)
        shorter = min(len(old_characters), len(new_characters))
        start = 0
        while start < shorter and old_characters[start] == new_characters[start]:
            start += 1
        end = 0
        while end < shorter - start and old_characters[-1 - end] == new_characters[-1 - end]:
            end += 1
        reader = _LeafReader(new.leaves)
        reader.take(start)
        between = tuple(reader.take(len(new_characters) - end))
        objects = tuple([leaf for leaf in old.leaves if leaf.is_object])
        return cls(old.text, start, end, between, not old.is_marked, objects)

    def count(self, leaves: Sequence[Leaf]) -> int:
        """Return the number of occurrences of the text in leaves."""
        return len(self._places(leaves))

    def _places(self, leaves: Sequence[Leaf]) -> list[int]:
        """Return the positions of the occurrences in the joined text of leaves."""
        whole = "".join([leaf.text for leaf in leaves])
        places = []
        at = whole.find(self.text)
        while at >= 0:
            if OBJECT not in self.text or self._has_objects(leaves, at):
                places.append(at)
                at = whole.find(self.text, at + len(self.text))
            else:
                at = whole.find(self.text, at + 1)
        return places

    def _has_objects(self, leaves: Sequence[Leaf], at: int) -> bool:
        reader = _LeafReader(leaves)
        reader.take(at)
        objects = [leaf for leaf in reader.take(at + len(self.text)) if leaf.is_object]
        return len(objects) == len(self.objects) and all(map(_is_alike, objects, self.objects))

    def apply(self, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        """Return leaves with every occurrence of the text replaced; the same without any."""
        places = self._places(leaves)
        if not places:
            return leaves
        reader = _LeafReader(leaves)
        result: list[Leaf] = []
        for at in places:
            result += reader.take(at + self.start)
            before = reader.last
            replaced = reader.take(at + len(self.text) - self.end)
            # An insertion belongs to the text before it.
            base = next((leaf for leaf in replaced if leaf.text), before) or reader.following
            result += [self._marked(leaf, base, replaced) for leaf in self.leaves]
            # No citation is lost with the words that it stood at.
            cites = {
                leaf.cite: Leaf("", cite=leaf.cite) if leaf.is_object else replace(leaf, text="")
                for leaf in replaced
                if leaf.cite
            }
            if self.leaves and base.cite:
                cites.pop(base.cite, None)
            result += cites.values()
        result += reader.take(sum(len(leaf.text) for leaf in leaves) + 1)
        return tuple(result)

    def _marked(self, leaf: Leaf, base: Leaf, replaced: Sequence[Leaf]) -> Leaf:
        if leaf.is_object:
            # One that stays keeps its citations and marks.
            return next((old for old in replaced if _is_alike(old, leaf)), leaf)
        if base.is_object:
            base = replace(_PLAIN, cite=base.cite)
        if not self.keeps_marks:
            return replace(leaf, cite=base.cite)
        if leaf.same_marks(_PLAIN):
            return replace(base, text=leaf.text)
        return replace(
            leaf,
            bold=leaf.bold or base.bold,
            italic=leaf.italic or base.italic,
            decoration=leaf.decoration or base.decoration,
            color=leaf.color or base.color,
            cite=base.cite,
        )


def _is_alike(one: Leaf, other: Leaf) -> bool:
    """Return whether two leaves are the same note, apart from citations, or name the same block."""
    return (
        one.type == other.type
        and (one.ref, one.form) == (other.ref, other.form)
        and "".join(leaf.text for leaf in one.note) == "".join(leaf.text for leaf in other.note)
    )


def _characters(text: InlineText, numbers: dict[Leaf, int]) -> list[tuple[str, int]]:
    """Return the characters of a text with a number for their marks."""
    pairs = []
    for leaf in text.leaves:
        number = numbers.setdefault(replace(leaf, text=""), len(numbers))
        pairs += [(character, number) for character in leaf.text]
    return pairs


class _LeafReader:
    """Reads leaves from the beginning to the end, in parts.

    Attributes:
        last: the last leaf with text that was read; None before.
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self._leaves = leaves
        self._index = 0
        # Where the current leaf begins, and what of it has been read.
        self._start = 0
        self._position = 0
        self.last: Leaf | None = None

    @property
    def following(self) -> Leaf:
        """The leaf that is read next, or the last one."""
        return self._leaves[min(self._index, len(self._leaves) - 1)]

    def take(self, until: int) -> list[Leaf]:
        """Return the leaves up to a position; an empty leaf belongs to what follows it."""
        parts = []
        while self._index < len(self._leaves) and self._position < until:
            leaf = self._leaves[self._index]
            end = self._start + len(leaf.text)
            part = leaf.text[self._position - self._start : until - self._start]
            parts.append(leaf if len(part) == len(leaf.text) else replace(leaf, text=part))
            if leaf.text:
                self.last = leaf
            self._position = min(end, until)
            if end <= until:
                self._index += 1
                self._start = end
        return parts
