"""Import conversion libraries on first use: an import takes a second or more, and some may not be
installed.
"""

import gc
import importlib
from typing import Any

_PACKAGE = __package__


def load(module: str) -> Any:
    """Return a module of this package.

    Raises:
        ModuleNotFoundError: a required library is not installed.
    """
    loaded = importlib.import_module(f"{_PACKAGE}.{module}")
    gc.freeze()  # modules stay: keep them out of garbage collection
    return loaded
