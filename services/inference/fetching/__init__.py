"""Fetching what a caller or a model names by its address.

This is the only place where they decide where the gateway connects to. `Fetcher` checks
each address before it connects, and connects to the address that it has checked.

::

    addresses   which IP addresses are public
    targets     which URLs are fetched, and where a redirect may lead
    connecting  names resolved, sockets opened to checked addresses
    naming      media type and file name of what was fetched
    fetcher     the requests, their bounds and redirects
"""
