"""A whole gateway in one process: facade and services on one event loop."""
