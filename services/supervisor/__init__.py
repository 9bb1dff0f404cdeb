"""The supervisor: starts the worker processes of a gateway, restarts dead ones, and stops them.

`gateway up` replaces itself with `python -m services.supervisor`, which runs as long as the
gateway. It imports no logging, asyncio, typing or settings: an idle supervisor takes little more
memory than the interpreter. Modules for rare work are imported on demand.
"""
