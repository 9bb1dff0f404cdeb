"""In-process gRPC calls, like grpc-java's in-process transport.

`InProcessServer` takes the handlers and interceptors of a `grpc.aio.Server`, and `InProcessChannel`
replaces a `grpc.aio.Channel` to it: stubs and servicers need no changes. Each call has metadata,
deadline, cancellation and status. It is served in a task of its own, or, if it has one request, in
the task that awaits or delivers its responses at once. A task that serves one request alone calls
methods by `InProcessChannel.direct` and `direct_stream`, without a call object. Messages are passed
without serialization: the servicer owns the request and the caller owns the response, so a sender
that reuses a message must copy it.

::

    stub → InProcessChannel → calls.Call ⇄ Exchange ⇄ ServedCall → servicer
"""
