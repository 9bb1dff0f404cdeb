"""The gateway's gRPC services, and the processes that run them."""

# Names of the services, in display order; `memory` includes stored responses.
SERVICES = ("accounts", "articles", "batches", "files", "inference", "memory")
