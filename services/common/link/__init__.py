"""Many gRPC calls over one stream, for the gateway's own processes.

`LinkChannel` stands in for a `grpc.aio.Channel`, `LinkServer` takes the handlers and
interceptors of a `grpc.aio.Server`: neither the generated stubs nor the servicers know
what carries a call. What goes over the wire is told in `gateway/link/v1/link.proto`.

::

    stub → LinkChannel → Exchange ⇄ Connection ══ frames ══ Session ⇄ ServedCall → servicer
           (channel)     (exchange)  (connection)           (session)  (served)

Each end of a call has an `Outgoing`, which the link's `Outbox` empties in turn with all
others, and an `Inbox`, which puts messages together and gives credit for those taken.
"""
