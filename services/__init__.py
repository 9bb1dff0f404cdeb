"""The gateway's gRPC services, and the processes that run them."""

# The services by name, in the order in which they are listed; memory brings stored responses.
SERVICES = ("accounts", "articles", "files", "inference", "memory")
