"""The gateway's gRPC services, and the processes that run them."""
