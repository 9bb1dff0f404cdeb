"""A backtracking matcher of regular expressions that counts its steps.

It works as `re` does (https://docs.python.org/3/library/re.html), on the tree of `re`'s own parser,
so that its steps grow as the time of `re` grows, on any machine and beside any load.
"""

import re
import re._constants as sre
import re._parser as parser
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_MAX_COPIES = 4_096
# As plain numbers: operations on `re.RegexFlag` would take a seventh of the time.
_ASCII, _UNICODE, _DEBUG = int(re.ASCII), int(re.UNICODE), int(re.DEBUG)
_IGNORECASE, _MULTILINE, _DOTALL = int(re.IGNORECASE), int(re.MULTILINE), int(re.DOTALL)
_CHARACTER, _SPLIT, _SAVE, _LOOK, _ATOMIC, _AT, _GROUP, _PROGRESS, _JUMP, _MATCH = range(10)


class TooManyStepsError(Exception):
    """Error raised when a search takes more steps than allowed."""


class StepCounter:
    """A regular expression whose steps are counted.

    Args:
        pattern: the expression.
        most: steps after which a search ends with `TooManyStepsError`.
        is_whole: whether it must match up to the end, as `fullmatch` does.
    """

    def __init__(self, pattern: re.Pattern[Any], most: int, *, is_whole: bool = False) -> None:
        self._program, self._slots = _compiled(pattern, is_whole)
        self._most = most
        self.steps = 0

    def match(self, text: str | bytes, start: int = 0) -> tuple[int, int] | None:
        """Return the span of a match at a position."""
        end = self._run(self._program, text, start, [None] * self._slots)
        return None if end is None else (start, end)

    def find_all(self, text: str | bytes) -> list[tuple[int, int]]:
        """Return the spans of all matches, as `finditer` does."""
        spans: list[tuple[int, int]] = []
        start = 0
        while start <= len(text):
            span = self.match(text, start)
            if span is not None:
                spans.append(span)
                start = span[1]
            if span is None or span[0] == span[1]:
                start += 1
        return spans

    def _run(self, program: list[Any], text: str | bytes, at: int, saved: list[Any]) -> int | None:
        """Return the end of the first match in the order of backtracking."""
        stack: list[tuple[int, int, list[Any]]] = [(0, at, saved)]
        while stack:
            pc, position, saved = stack.pop()
            while True:
                self.steps += 1
                if self.steps > self._most:
                    raise TooManyStepsError
                operation, argument, other = program[pc]
                pc += 1
                if operation == _CHARACTER:
                    if position == len(text) or not argument(text[position]):
                        break
                    position += 1
                elif operation == _SPLIT:
                    stack.append((other, position, saved))
                    pc = argument
                elif operation == _JUMP:
                    pc = argument
                elif operation == _MATCH:
                    return position
                elif operation in (_SAVE, _PROGRESS):
                    if operation == _PROGRESS and saved[argument] == position:
                        break
                    saved = saved.copy()
                    saved[argument] = position
                else:
                    after = self._after(operation, argument, other, text, position, saved)
                    if after is None:
                        break
                    position = after
        return None

    def _after(
        self, operation: int, argument: Any, other: Any, text: Any, position: int, saved: list[Any]
    ) -> int | None:
        """Return the position after an instruction, or None if it does not match."""
        if operation == _AT:
            return position if _is_at(argument, text, position, other) else None
        if operation == _ATOMIC:
            return self._run(other, text, position, saved)
        if operation == _LOOK:
            inner, back, negated = other
            start = position - back
            end = None if start < 0 else self._run(inner, text, start, saved)
            return position if (end is None) == negated else None
        begun, ended = saved[2 * argument], saved[2 * argument + 1]
        if begun is None or ended is None:
            return None
        part = text[begun:ended]
        self.steps += len(part)
        return position + len(part) if text.startswith(part, position) else None


# Bounded repeats of bounded repeats are long programs, which take longer than most matches.
@lru_cache(maxsize=8)
def _compiled(pattern: re.Pattern[Any], is_whole: bool) -> tuple[list[Any], int]:
    """Return the program of an expression, and the number of its slots."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~_UNICODE & ~_DEBUG)
    compiler = _Compiler()
    compiler.sequence(tree, tree.state.flags)
    if is_whole:
        compiler.emit(_AT, sre.AT_END_STRING)
    compiler.emit(_MATCH)
    return compiler.program, 2 * tree.state.groups + compiler.loops


class _Compiler:
    def __init__(self) -> None:
        self.program: list[Any] = []
        self.loops = 0
        # The tests of characters, which all copies of a repeated node share.
        self._tests: dict[tuple[Any, int, int], Callable[[Any], bool]] = {}

    def emit(self, operation: int, argument: Any = None, other: Any = None) -> int:
        self.program.append((operation, argument, other))
        return len(self.program) - 1

    def sequence(self, tree: Any, flags: int) -> None:
        for operation, argument in tree:
            self._node(operation, argument, flags)

    def _node(self, operation: Any, argument: Any, flags: int) -> None:
        match operation:
            case sre.LITERAL | sre.NOT_LITERAL | sre.ANY | sre.IN:
                self.emit(_CHARACTER, self._shared_test(operation, argument, flags))
            case sre.SUBPATTERN:
                group, added, removed, inner = argument
                if group is not None:
                    self.emit(_SAVE, 2 * group)
                self.sequence(inner, (flags | added) & ~removed)
                if group is not None:
                    self.emit(_SAVE, 2 * group + 1)
            case sre.BRANCH:
                self._branch(argument[1], flags)
            case sre.MAX_REPEAT | sre.MIN_REPEAT:
                self._repeat(*argument, flags, is_greedy=operation is sre.MAX_REPEAT)
            case sre.POSSESSIVE_REPEAT:
                inner = self._inside(lambda: self._repeat(*argument, flags, is_greedy=True))
                self.emit(_ATOMIC, None, inner)
            case sre.ATOMIC_GROUP:
                self.emit(_ATOMIC, None, self._inside(lambda: self.sequence(argument, flags)))
            case sre.ASSERT | sre.ASSERT_NOT:
                direction, tree = argument
                back = tree.getwidth()[0] if direction < 0 else 0
                inner = self._inside(lambda: self.sequence(tree, flags))
                self.emit(_LOOK, None, (inner, back, operation is sre.ASSERT_NOT))
            case sre.AT:
                self.emit(_AT, argument, flags)
            case sre.GROUPREF:
                self.emit(_GROUP, argument)
            case _:
                raise NotImplementedError(str(operation))

    def _shared_test(self, operation: Any, argument: Any, flags: int) -> Callable[[Any], bool]:
        key = (operation, argument if isinstance(argument, int) else id(argument), flags)
        if key not in self._tests:
            self._tests[key] = character_test(operation, argument, flags)
        return self._tests[key]

    def _inside(self, compile_inner: Callable[[], None]) -> list[Any]:
        outer, self.program = self.program, []
        compile_inner()
        self.emit(_MATCH)
        inner, self.program = self.program, outer
        return inner

    def _branch(self, branches: Any, flags: int) -> None:
        jumps = []
        for branch in branches[:-1]:
            split = self.emit(_SPLIT)
            self.sequence(branch, flags)
            jumps.append(self.emit(_JUMP))
            self.program[split] = (_SPLIT, split + 1, len(self.program))
        self.sequence(branches[-1], flags)
        for jump in jumps:
            self.program[jump] = (_JUMP, len(self.program), None)

    def _repeat(self, least: int, most: int, tree: Any, flags: int, *, is_greedy: bool) -> None:
        assert least <= _MAX_COPIES
        for _ in range(least):
            self.sequence(tree, flags)
        if most == sre.MAXREPEAT:
            self.loops += 1
            slot = -self.loops
            split = self.emit(_SPLIT)
            if tree.getwidth()[0] == 0:
                self.emit(_PROGRESS, slot)
            self.sequence(tree, flags)
            self.emit(_JUMP, split)
            self._choose(split, len(self.program), is_greedy)
            return
        assert most - least <= _MAX_COPIES
        splits = []
        for _ in range(most - least):
            splits.append(self.emit(_SPLIT))
            self.sequence(tree, flags)
        for split in splits:
            self._choose(split, len(self.program), is_greedy)

    def _choose(self, split: int, end: int, is_greedy: bool) -> None:
        first, second = (split + 1, end) if is_greedy else (end, split + 1)
        self.program[split] = (_SPLIT, first, second)


def character_test(operation: Any, argument: Any, flags: int) -> Callable[[Any], bool]:
    """Return a test of a character, or of a byte as a number, of a node of the tree."""
    results: dict[Any, bool] = {}

    def test(character: Any) -> bool:
        result = results.get(character)
        if result is None:
            text = chr(character) if isinstance(character, int) else character
            result = results[character] = _matches(operation, argument, flags, text)
        return result

    return test


def _matches(operation: Any, argument: Any, flags: int, character: str) -> bool:
    variants = {character}
    if flags & _IGNORECASE:
        variants |= {one for one in (character.lower(), character.upper()) if len(one) == 1}
    match operation:
        case sre.LITERAL:
            return any(ord(one) == argument for one in variants)
        case sre.NOT_LITERAL:
            return all(ord(one) != argument for one in variants)
        case sre.ANY:
            return bool(flags & _DOTALL) or character != "\n"
    is_negated = argument[0][0] is sre.NEGATE
    is_member = any(_is_in(item, flags, one) for item in argument for one in variants)
    return is_member != is_negated


def _is_in(item: Any, flags: int, character: str) -> bool:
    operation, argument = item
    match operation:
        case sre.LITERAL:
            return ord(character) == argument
        case sre.RANGE:
            return bool(argument[0] <= ord(character) <= argument[1])
        case sre.CATEGORY:
            return _is_of(argument, flags, character)
    return False  # NEGATE


def _is_of(category: Any, flags: int, character: str) -> bool:
    name = str(category).removeprefix("CATEGORY_")
    is_negated, name = name.startswith("NOT_"), name.removeprefix("NOT_")
    is_ascii = bool(flags & _ASCII) or not flags & _UNICODE
    match name:
        case "DIGIT":
            result = character.isdecimal()
        case "SPACE":
            result = character.isspace()
        case "WORD":
            result = character.isalnum() or character == "_"
        case _:
            raise NotImplementedError(name)
    if is_ascii and not character.isascii():
        result = False
    if name == "SPACE" and is_ascii and character in "\x1c\x1d\x1e\x1f":
        result = False
    return result != is_negated


def _is_at(where: Any, text: Any, position: int, flags: int) -> bool:
    end = len(text)
    newline: Any = "\n" if isinstance(text, str) else b"\n"
    match where:
        case sre.AT_BEGINNING if flags is not None and flags & _MULTILINE:
            return position == 0 or text[position - 1 : position] == newline
        case sre.AT_BEGINNING | sre.AT_BEGINNING_STRING:
            return position == 0
        case sre.AT_END if flags is not None and flags & _MULTILINE:
            return position == end or text[position : position + 1] == newline
        case sre.AT_END:
            return position == end or (position == end - 1 and text[position:] == newline)
        case sre.AT_END_STRING:
            return position == end
        case sre.AT_BOUNDARY | sre.AT_NON_BOUNDARY:
            sides = [position > 0 and _word(text, position - 1, flags)]
            sides.append(position < end and _word(text, position, flags))
            return (sides[0] != sides[1]) == (where is sre.AT_BOUNDARY)
    raise NotImplementedError(str(where))


def _word(text: Any, position: int, flags: int) -> bool:
    character = text[position]
    if isinstance(character, int):
        character = chr(character)
    return _is_of(sre.CATEGORY_WORD, flags, character)
