"""Traces and metrics for an OpenTelemetry collector.

`trace_context` reads and writes the headers of W3C trace context, `spans` defines the recorded
spans and measurements, and `otlp` exports them with OpenTelemetry's SDK, which is loaded only if a
collector is configured (`opening`).
"""
