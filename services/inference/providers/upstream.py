"""The HTTP side that providers share: one pooled client, server-sent events, failures.

A provider posts JSON and gets either the whole body or batches of server-sent
events, one batch for each read. Everything that can go wrong on the way is an
`UpstreamError`; what a status means is decided in `classify`, once.
"""
