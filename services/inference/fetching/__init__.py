"""Fetch URLs given by callers and models.

Only here do callers and models decide where the gateway connects to. `Fetcher` checks each
address, and connects to the checked address.

::

    addresses   which IP addresses are public
    targets     which URLs and redirects are allowed
    connecting  resolves names, opens sockets to checked addresses
    naming      media type and file name of the result
    fetcher     requests, their limits and redirects
"""
