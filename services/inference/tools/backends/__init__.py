"""Search backends: one file each.

::

    engine      what an engine has of its own, and the search that all of them share
    asking      a request to one, its bounds and its failures
    filtering   domains in a query, and results made fit
    build       the one of the settings
"""

from services.inference.tools.backends.build import search_backend

__all__ = ["search_backend"]
