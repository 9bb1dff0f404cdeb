"""Fetch URLs given by callers and models.

This is the only place where callers and models decide where the gateway connects to. `Fetcher`
checks each address, and connects to the checked address.

::

    addresses   classifies IP addresses as public or not
    targets     checks URLs and redirects
    connecting  resolves names, opens sockets to checked addresses
    naming      media type and file name of the result
    fetcher     requests, their limits and redirects
"""
