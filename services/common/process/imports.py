"""Imports of packages without parts that a process does not need."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import cast


def import_without_tls(name: str) -> None:
    """Import a module as on a machine without `ssl`.

    Libraries for which `ssl` is optional then load no TLS and read no certificates: 3 MB each.

    Raises:
        ImportError: the module needs `ssl`, or there is no such module.
    """
    # None in `sys.modules` makes the import raise ModuleNotFoundError.
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


def import_with_stand_in(name: str, replaced: str, *attributes: str) -> ModuleType:
    """Import a module with a stand-in for a package that it imports and never uses; return it.

    The module and all that it imports behave as if the package were not installed, but for the
    import of `attributes`, each of which is an exception that nothing raises.

    Raises:
        ImportError: there is no such module, or it needs more of the package.
    """
    if name in sys.modules:
        return sys.modules[name]
    stand_in = ModuleType(replaced)
    vars(stand_in).update({one: type(one, (Exception,), {}) for one in attributes})
    hidden = sys.modules.get(replaced)
    sys.modules[replaced] = stand_in
    try:
        return importlib.import_module(name)
    finally:
        if hidden is None:
            del sys.modules[replaced]
        else:
            sys.modules[replaced] = hidden


def import_bare(package: str, names: Mapping[str, Sequence[str]], **attributes: object) -> None:
    """Import a package without running its `__init__`, with some names of its modules.

    The package's modules can be imported as usual. A package that is already imported stays
    unchanged.

    Args:
        package: the package's name.
        names: names to copy into the package, by module name.
        attributes: attributes that are set before any module of the package is imported.

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
