"""The regular expressions of the gateway: those that its modules hold, and how they are used."""

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import facade
import services

ROOT = Path(services.__file__).parents[1]
# Not modules of a process: run by Alembic, or as programs.
_PROGRAMS = ("services.common.storage.migrations", "__main__")
_CALLS = frozenset(
    {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}
)


@dataclass
class Held:
    """A compiled expression.

    Attributes:
        pattern: the expression.
        places: the names that hold it, with their modules.
        methods: what is called on them; "*" where it is handed on.
    """

    pattern: re.Pattern[Any]
    places: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield the trees of all modules, by their paths from the repository."""
    for package in (services, facade):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def held() -> list[Held]:
    """Return all expressions that modules hold, classes and collections included."""
    by_pattern: dict[re.Pattern[Any], Held] = {}
    methods, _ = _use()
    for module in _modules():
        for name, value in list(vars(module).items()):
            for pattern, method in _patterns(value, module):
                one = by_pattern.setdefault(pattern, Held(pattern))
                place = f"{module.__name__}.{name}"
                one.places.append(place)
                if value is pattern:
                    one.methods |= methods.get(place, set())
                else:
                    one.methods.add(method)
    return list(by_pattern.values())


def compiled_in_functions() -> Sequence[str]:
    """Return the places of calls of `re` outside of modules' own statements."""
    return _use()[1]


def _is_call_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _CALLS
    )


def _modules() -> Iterator[ModuleType]:
    for package in (services, facade):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not any(one in module.name for one in _PROGRAMS):
                yield importlib.import_module(module.name)


def _patterns(
    value: Any, module: ModuleType, depth: int = 4
) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield the expressions in a value, each with its method if a method is what is held."""
    if isinstance(value, re.Pattern):
        yield value, "*"
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__, value.__name__
    elif not depth:
        return
    elif isinstance(value, Mapping):
        for one in (*value.keys(), *value.values()):
            yield from _patterns(one, module, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _patterns(one, module, depth - 1)
    elif getattr(value, "__module__", None) == module.__name__:
        slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        for one in (*getattr(value, "__dict__", {}).values(), *slots):
            yield from _patterns(one, module, depth - 1)


@functools.cache
def _use() -> tuple[Mapping[str, set[str]], Sequence[str]]:
    """Return the methods called on each name, by module and name, and the calls in functions."""
    methods: dict[str, set[str]] = {}
    places: list[str] = []
    for path, tree in sources():
        nodes = [*ast.walk(tree)]
        _add_methods(path, nodes, methods)
        if any(_is_call_of_re(node) for node in nodes):
            places += _functions_that_call(path, nodes)
    return methods, places


def _functions_that_call(path: str, nodes: Sequence[ast.AST]) -> Iterator[str]:
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if _is_call_of_re(node):
                    yield f"{path}:{getattr(function, 'name', 'lambda')}"


def _add_methods(path: str, nodes: Sequence[ast.AST], methods: dict[str, set[str]]) -> None:
    own = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    imported = _imported(nodes)

    def full_name(node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return imported.get(node.id, f"{own}.{node.id}")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return f"{imported.get(node.value.id, '')}.{node.attr}"
        return ""

    called = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and (name := full_name(node.value)):
            methods.setdefault(name, set()).add(node.attr)
            called.add(id(node.value))
    for node in nodes:
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        if is_read and id(node) not in called and (name := full_name(node)):
            methods.setdefault(name, set()).add("*")


def _imported(nodes: Sequence[ast.AST]) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names
