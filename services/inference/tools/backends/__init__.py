"""Search backends: one file each.

::

    engine      the definition of a search engine, and the search shared by all engines
    asking      requests to backends, with their limits and failures
    filtering   domain operators in queries, and cleaned results
    build       creates the backend of the settings
"""

from services.inference.tools.backends.build import search_backend

__all__ = ["search_backend"]
