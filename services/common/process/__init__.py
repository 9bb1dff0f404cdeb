"""A process of the gateway: its start and end, logs, metrics, traces and memory."""
