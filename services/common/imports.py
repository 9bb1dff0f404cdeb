"""Imports that leave out what a process has no use for."""

import importlib
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
