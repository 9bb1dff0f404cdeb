"""Requests for a part: one with it, and one that lacks it alone, or has another value."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from tests.surface.context import completed
from tests.surface.requests import Part
from tests.surface.samples import EXCLUSIVE, inside, is_needed, least, sample
from tests.surface.sdk_types import Field, Step, hints_of

Json = dict[str, Any]


def bodies(dialect: str, part: Part, model: str) -> tuple[Json, list[Json]]:
    """Return a request with a part, and those that differ from it in this part alone.

    An optional part is left out. Others have another value: of another kind if there is one, or of
    the same, for a part whose other kinds are refused. The last one lacks the field of the request
    that holds the part, for one of which every other value is refused.
    """
    field, way = part.field, part.field.steps[:-1]

    def build(value: Any) -> Json:
        held = least(field.holder) if way else {}
        held = {name: one for name, one in held.items() if not _excludes(field.name, name)}
        if value is not None:
            held[field.name] = value
        return completed(dialect, field.steps[0].name, wrapped(way, held), model)

    first, *others = values_of(part)
    is_needed_here = is_needed(field.holder, field.name, field.hint) or field.name in EXCLUSIVE
    # A conversation has more messages than the part's.
    without = [build(one) for one in (others if is_needed_here and way else [None])]
    return build(first), [*without, completed(dialect, field.steps[0].name, {}, model)]


def values_of(part: Part) -> Iterator[Any]:
    """Yield the value of a part, then other values of its field."""
    field, holder = part.field, part.field.holder.__name__
    if part.step is not None:
        member = part.step.member
        yield inside(field.hint, member, least(member))
        other = next(one for one in field.members if one != member)
        yield inside(field.hint, other, least(other))
        yield inside(field.hint, member, least(member, variant=1))
    elif part.value is not None:
        yield _listed(field, part.value)
        yield from (_listed(field, one) for one in field.literals if one != part.value)
    else:
        yield from (sample(field.hint, holder, field.name, variant) for variant in (0, 1))


def _excludes(name: str, other: str) -> bool:
    """Return whether an object with a field has no other one."""
    return name == other or {name, other} <= EXCLUSIVE


def _listed(field: Field, value: Any) -> Any:
    """Return a value of an enumeration as a field has it, which may be a list of those."""
    literals = (one for one in field.values if get_origin(one) is Literal)
    return next(
        inside(field.hint, literal, value) for literal in literals if value in get_args(literal)
    )


def wrapped(way: Sequence[Step], held: Json) -> Json:
    """Return a request with an object at the end of a way."""
    for number in range(len(way) - 1, -1, -1):
        step = way[number]
        hint = hints_of(step.holder)[step.name]
        outer = least(step.holder) if number else {}
        held = {**outer, step.name: inside(hint, step.member, held)}
    return held
