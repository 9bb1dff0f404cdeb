"""In-process gRPC calls, like grpc-java's in-process transport.

`InProcessServer` uses the handlers and interceptors of a `grpc.aio.Server`, and `InProcessChannel`
replaces a `grpc.aio.Channel` to it: stubs and servicers need no changes. Each call has metadata,
deadline, cancellation and status. A call runs in a task of its own. A call with one request runs in
the caller's task instead, if the caller awaits it or delivers its responses at once. A task that
serves a single request can call methods without a call object, by `InProcessChannel.direct` and
`direct_stream`. Messages are passed without serialization: the servicer owns the request and the
caller owns the response, so a sender that reuses a message must copy it.

::

    stub → InProcessChannel → calls.Call ⇄ Exchange ⇄ ServedCall → servicer
"""
