"""Import conversion libraries in a process that writes no files while converting.

Libraries are imported on first use: an import takes a second or more, and some may not be
installed. Importing may write bytecode files, the only files that a worker writes.
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
        ModuleNotFoundError: a required library is not installed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    try:
        loaded = importlib.import_module(f"{_PACKAGE}.{module}")
        gc.freeze()  # modules stay: keep them out of garbage collection
        return loaded
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def no_files() -> Iterator[None]:
    """Return a context in which the process cannot write files, so a kill leaves none behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
