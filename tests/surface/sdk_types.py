"""Walks the types of the SDKs: every field at any depth, union members and values."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

_DISCRIMINATORS = ("type", "role")
_WRAPPERS = (Required, NotRequired, Annotated)


@dataclass(frozen=True)
class Step:
    """One field on the way from a request to a field of it.

    Attributes:
        holder: the object that has the field.
        name: of the field.
        member: the object in the field that the way goes on in; None at its end.
        tag: the name of the member in the path; "" if there is no other.
    """

    holder: Any
    name: str
    member: Any = None
    tag: str = ""

    def __str__(self) -> str:
        return f"{self.name}[{self.tag}]" if self.tag else self.name


@dataclass(frozen=True)
class Field:
    """A field of a request or an answer.

    Attributes:
        steps: the way to it; the last one is the field itself, without a member.
        hint: its type.
        values: the types of its values, without unions and lists.
    """

    steps: tuple[Step, ...]
    hint: Any
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        return self.steps[-1].name

    @property
    def holder(self) -> Any:
        return self.steps[-1].holder

    @property
    def path(self) -> str:
        """The names on the way, with the members of unions in brackets."""
        return ".".join(map(str, self.steps))

    @property
    def names(self) -> str:
        """The names on the way alone."""
        return ".".join(step.name for step in self.steps)

    @property
    def members(self) -> tuple[Any, ...]:
        """The objects that it may hold, or that may be in its list."""
        # Requests may have blocks of answers too, which are written as those of requests.
        is_one = is_typeddict if is_typeddict(self.holder) else is_object
        return tuple(dict.fromkeys(value for value in self.values if is_one(value)))

    @property
    def literals(self) -> tuple[Any, ...]:
        """The values of an enumeration."""
        named = (get_args(value) for value in self.values if get_origin(value) is Literal)
        return tuple(dict.fromkeys(value for values in named for value in values))

    @property
    def is_required(self) -> bool:
        return is_required(self.holder, self.name, self.hint)


def leaves(hint: Any) -> Iterator[Any]:
    """Yield the types of the values that a type hint allows, without unions and lists."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal or origin is None:
        yield hint
    elif origin in _WRAPPERS:
        yield from leaves(arguments[0])
    elif origin in (Union, UnionType):
        for one in arguments:
            yield from leaves(one)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield dict
        yield from leaves(arguments[1])
    else:
        for one in arguments:
            if one is not Ellipsis:
                yield from leaves(one)


def fields_of(
    kind: Any,
    *,
    enters: Callable[[str], bool] = lambda name: True,
    is_home: Callable[[Step], bool] = lambda step: True,
) -> Iterator[Field]:
    """Yield all fields of an object, at any depth; the fields of each type once.

    Args:
        kind: the type.
        enters: whether the members of a field of this name are visited too.
        is_home: whether a member is visited there; it may be in several fields.
    """
    waiting: deque[tuple[Any, tuple[Step, ...]]] = deque([(kind, ())])
    seen = {kind}
    while waiting:
        holder, way = waiting.popleft()
        for name, hint in hints_of(holder).items():
            field = Field((*way, Step(holder, name)), hint, tuple(leaves(hint)))
            yield field
            for member in field.members if enters(name) else ():
                step = step_into(field, member)
                if member not in seen and is_home(step):
                    seen.add(member)
                    waiting.append((member, (*way, step)))


def step_into(field: Field, member: Any) -> Step:
    """Return the step from a field into one of the objects that it may hold."""
    tag = tag_of(member) if len(field.members) > 1 else ""
    if sum(tag_of(other) == tag for other in field.members) > 1:
        tag = f"{tag}/{member.__name__}"
    return Step(field.holder, field.name, member, tag)


def is_object(value: Any) -> bool:
    """Return whether a type is that of an object: of a request, or of an answer."""
    return is_typeddict(value) or (isinstance(value, type) and issubclass(value, BaseModel))


def hints_of(kind: Any) -> Mapping[str, Any]:
    """Return the types of an object's fields."""
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    return {name: field.annotation for name, field in kind.model_fields.items()}


def tag_of(member: Any) -> str:
    """Return the name of an object in a union: the value of its type or role, or of its class."""
    hints = hints_of(member)
    for name in _DISCRIMINATORS:
        values = [value for value in leaves(hints.get(name)) if get_origin(value) is Literal]
        if values:
            return str(get_args(values[0])[0])
    return str(member.__name__)


def has_one_value(field: Field) -> bool:
    """Return whether a field has one value only, as the type of an object has."""
    return len(field.literals) == 1 and field.is_required and len(field.values) == 1


def is_scalar(value: Any) -> bool:
    """Return whether a value is a switch, a number or one of some names."""
    return value in (bool, int, float, NoneType) or get_origin(value) is Literal


def is_required(holder: Any, name: str, hint: Any) -> bool:
    """Return whether an object needs a field of a type."""
    if issubclass(holder, BaseModel):
        return bool(holder.model_fields[name].is_required())
    wrapper = get_origin(hint)
    return wrapper is Required or (wrapper is not NotRequired and name in holder.__required_keys__)
