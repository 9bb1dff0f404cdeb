"""Traces and metrics for an OpenTelemetry collector.

`trace_context` reads and writes the headers of W3C's trace context; `spans` describes what is
recorded, and `export` sends it with OpenTelemetry's SDK, which is loaded only where the settings
name a collector.
"""
