"""Start the worker processes of a gateway, restart those that die, and stop them.

`gateway up` replaces itself with `python -m services.supervisor`, which runs for as long as
the gateway does. It imports no logging, no asyncio, no typing and no settings: an idle
supervisor takes little more memory than the interpreter. Rare work imports what it needs
when it is done.
"""
