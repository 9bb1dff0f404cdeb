"""gRPC calls inside one process, as grpc-java's in-process transport makes them.

`InProcessServer` takes the handlers and interceptors of a `grpc.aio.Server`, and
`InProcessChannel` stands in for a `grpc.aio.Channel` to it: neither the generated stubs nor
the servicers know what carries a call. Each call runs in a task of its own, with metadata,
deadline, cancellation and status as everywhere. Messages are handed over and not serialized:
a request belongs to its servicer, a response to its caller, and whoever wants to keep what it
has sent keeps a copy.

::

    stub → InProcessChannel → calls.Call ⇄ Exchange ⇄ ServedCall → servicer
"""
