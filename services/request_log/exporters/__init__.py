"""Exporters of the request log: JSON lines in files or a bucket, a webhook, OTLP logs.

`queue` holds the entries that wait for an exporter, and sends them in batches; the other modules
send a batch to one kind of place. All get entries as they were stored, with redacted bodies.
"""
