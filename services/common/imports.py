"""Imports of packages without the parts that a process does not use."""

import importlib
import importlib.util
import sys
from abc import ABCMeta
from collections.abc import Mapping, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from opcode import opmap
from operator import is_
from types import CodeType, ModuleType
from typing import cast

# `inspect.CO_HAS_DOCSTRING`, and before there was one CO_OPTIMIZED, of functions, whose first
# constant was a docstring or None; `inspect` itself takes 0.5 MB.
_MAY_HAVE_DOCSTRING = 0x4000000 if sys.version_info >= (3, 13) else 0x1
# Instructions of code that uses its first constant.
_USES_FIRST = tuple(
    bytes((opmap[name], 0)) for name in ("LOAD_CONST", "RETURN_CONST") if name in opmap
)
# Py_TPFLAGS_IMMUTABLETYPE
_IMMUTABLE = 1 << 8


def import_without_tls(name: str) -> None:
    """Import a module as on a machine without `ssl`.

    Libraries that can do without then load no TLS and read no certificates: 3 MB each.

    Raises:
        ImportError: the module needs `ssl`, or there is no such module.
    """
    # None stands for a module that cannot be found.
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    hidden = modules.get("ssl")
    modules["ssl"] = None
    try:
        importlib.import_module(name)
    finally:
        if hidden is None:
            del modules["ssl"]
        else:
            modules["ssl"] = hidden


def import_bare(package: str, names: Mapping[str, Sequence[str]], **attributes: object) -> None:
    """Import a package without running its `__init__`, and give it some names of its modules.

    The package's modules can be imported as usual. A package that was imported before stays as
    it is.

    Args:
        package: the package's name.
        names: the names to take from each module of the package, by the module's own name.
        attributes: attributes that the package has before any of its modules is imported.

    Raises:
        ImportError: there is no such package or module.
    """
    if package in sys.modules:
        return
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"no package {package!r}", name=package)
    bare = importlib.util.module_from_spec(spec)
    sys.modules[package] = bare
    try:
        vars(bare).update(attributes)
        for module, wanted in names.items():
            whole = importlib.import_module(f"{package}.{module}")
            for name in wanted:
                setattr(bare, name, getattr(whole, name))
    except BaseException:
        del sys.modules[package]
        raise


def drop_docstrings() -> None:
    """Have modules that are imported from now on keep no docstrings: 3 MB of a worker.

    Python's own option for that, `-OO`, leaves assertions out too, and compiles every module at
    every start where it may not write the result beside the module.
    """
    loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_TerseLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
    sys.path_importer_cache.clear()


class _TerseLoader(SourceFileLoader):
    """Loads a module without docstrings."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, with functions that have no docstrings."""
        code = super().get_code(fullname)
        return None if code is None else _without_docstrings(code)

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module, and empty the docstrings of itself and of its plain classes."""
        super().exec_module(module)
        # Code that adds to what is inherited takes an empty text, but no None.
        module.__doc__ = ""
        for value in vars(module).values():
            if (
                type(value) in (type, ABCMeta)
                and value.__module__ == module.__name__
                and not value.__flags__ & _IMMUTABLE
                and isinstance(vars(value).get("__doc__"), str)
            ):
                value.__doc__ = ""


def _without_docstrings(code: CodeType) -> CodeType:
    """Return code whose functions have no docstrings."""
    constants = [
        _without_docstrings(one) if isinstance(one, CodeType) else one for one in code.co_consts
    ]
    if (
        code.co_flags & _MAY_HAVE_DOCSTRING
        and constants
        and isinstance(constants[0], str)
        and not code.co_name.startswith("<")
        and not any(one in code.co_code for one in _USES_FIRST)
    ):
        constants[0] = None
    if all(map(is_, constants, code.co_consts)):
        return code
    return code.replace(co_consts=tuple(constants))
