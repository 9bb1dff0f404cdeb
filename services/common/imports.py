"""Imports that leave out what a process has no use for."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_tls() -> Iterator[None]:
    """Let what is imported inside find no `ssl`, as on a machine that has none.

    Libraries that can do without then load no TLS and read no certificates: 3 MB each.
    """
    hidden = sys.modules.get("ssl")
    sys.modules["ssl"] = None  # type: ignore[assignment]  # which stands for a missing module
    try:
        yield
    finally:
        if hidden is None:
            del sys.modules["ssl"]
        else:
            sys.modules["ssl"] = hidden
