"""Imports of packages without the parts that a process does not use, or does not use yet."""

import gc
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import cast


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


def import_later(name: str) -> None:
    """Import a module when the first of its names is used.

    It is so for all who import the module itself from its package (`from package import module`),
    which is imported now; `from package.module import name` imports the module at once. Annotations
    must be strings: values would be looked up. A module that was imported before stays as it is.
    What there is after the import is kept out of garbage collection, as at the start of a process.

    Raises:
        ImportError: there is no such package; a use of the module raises it if there is no module.
    """
    package, _, module = name.rpartition(".")
    parent = importlib.import_module(package)
    if name not in sys.modules:
        setattr(parent, module, _LaterModule(name))


def import_now(name: str) -> ModuleType:
    """Return a module, which is imported if it has not been; any thread may do so.

    Raises:
        ImportError: there is no such module.
    """
    is_new = name not in sys.modules
    module = importlib.import_module(name)
    if is_new:
        # Modules stay: a full collection would look at all that is in them each time.
        gc.freeze()
    return module


class _LaterModule(ModuleType):
    """A module that is imported when the first of its names is used."""

    def __getattr__(self, name: str) -> object:
        value = getattr(import_now(self.__name__), name)
        # Found without this function from now on.
        setattr(self, name, value)
        return value


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
