"""Importing what a conversion needs, in a process that writes no files while it converts.

Libraries are imported when a medium needs them: the first import takes a second or more, and
some may not be installed. Python keeps what it compiles then in files, which are the only ones
that a worker writes.
"""

import contextlib
import gc
import importlib
import resource
from collections.abc import Iterator
from typing import Any

_PACKAGE = __package__


def load(module: str) -> Any:
    """Return a module of this package.

    Raises:
        ModuleNotFoundError: a library that it imports is not installed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    try:
        loaded = importlib.import_module(f"{_PACKAGE}.{module}")
        gc.freeze()  # modules stay: the collector need not walk them after each conversion
        return loaded
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def no_files() -> Iterator[None]:
    """Return a context in which the process writes no files, so that none is left by a kill."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
