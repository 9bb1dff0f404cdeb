"""Traces, metrics and logs for an OpenTelemetry collector.

`trace_context` reads and writes the headers of W3C trace context, `spans` defines the recorded
spans, measurements and log records, and `otlp` exports them with OpenTelemetry's SDK, which is
loaded only if a collector is configured (`opening`).
"""
