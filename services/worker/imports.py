"""Imports of large libraries without their unused parts, which saves a worker 7 MB of memory."""

import mimetypes
import sys
from importlib.metadata import version

from google.protobuf.internal import api_implementation

from services.common.process.imports import import_bare


def import_used_parts() -> None:
    """Import libraries in part; must be called before any other import of them.

    - mimetypes: the gateway has its own table of types; the machine's table takes 0.5 MB.
    - attr: used by aiohttp only, for classes without validators and converters.
    - aiohttp: a worker uses its HTTP parser but not its client and server.
    - protobuf: messages are implemented in C; the unused Python implementation is skipped.
    - prometheus_client: its exposition, an HTTP server, is imported by the first /metrics request.
    - SQLAlchemy: the repositories use connections, without sessions or mapped classes.
    """
    mimetypes.knownfiles.clear()
    import_bare("attr", {"_make": ("attrib", "attrs", "evolve")})
    attr = vars(sys.modules["attr"])
    attr["s"], attr["ib"] = attr["attrs"], attr["attrib"]
    import_bare(
        "aiohttp",
        {
            "http": ("HttpVersion10", "HttpVersion11"),
            "client_exceptions": ("ClientConnectionResetError",),
        },
        __version__=version("aiohttp"),
    )
    if api_implementation.Type() != "python":
        import_bare("google.protobuf.internal.python_message", {})
    import_bare(
        "prometheus_client",
        {
            "metrics": ("Counter", "Gauge", "Histogram"),
            "metrics_core": ("Metric",),
            "registry": ("CollectorRegistry",),
        },
    )
    import_bare(
        "sqlalchemy.ext.asyncio",
        {"engine": ("AsyncConnection", "AsyncEngine", "create_async_engine")},
    )
