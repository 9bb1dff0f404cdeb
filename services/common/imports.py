"""Imports that leave out what a process has no use for."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import cast


def import_without_tls(name: str) -> None:
    """Import a module that finds no `ssl`, as on a machine that has none.

    Libraries that can do without then load no TLS and read no certificates: 3 MB each.

    Raises:
        ImportError: it cannot do without, or there is no such module.
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


def import_bare(package: str, module: str, *names: str) -> None:
    """Import a package without what its `__init__` loads: it has only `names`, of one `module`.

    Its other modules can be imported as ever.

    A package that was imported before stays as it is.

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
        whole = importlib.import_module(f"{package}.{module}")
        for name in names:
            setattr(bare, name, getattr(whole, name))
    except BaseException:
        del sys.modules[package]
        raise
