"""The log of requests: its table, its pages, its retention and its gRPC service."""
