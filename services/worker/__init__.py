"""The worker: facade and services of a gateway in one process, on one event loop."""
