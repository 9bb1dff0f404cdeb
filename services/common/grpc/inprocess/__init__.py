"""gRPC calls within a process, like grpc-java's in-process transport.

`InProcessServer` has the handlers and interceptors of a `grpc.aio.Server`, and `InProcessChannel`
replaces a `grpc.aio.Channel` to it: stubs and servicers need no changes. A call with one request is
served in the task that awaits it, or that reads its responses. A call with a request stream is
served in a task of its own, behind two bounded queues. In both cases the servicer runs in a context
of its own: neither side sees the context variables of the other.

Messages are passed without serialization: the servicer owns the request and the caller owns the
response, so a sender that reuses a message must copy it. Initial metadata is not passed on.

::

    stub → channel → one request: InProcessCall (in the caller's task)            → servicer
                     request stream: QueuedCall ⇄ queues ⇄ InProcessCall (a task) → servicer
"""
