"""Tools that a caller runs in a format of its dialect, as functions of other providers. Pure.

`rewriting` replaces the tools of a request, and the calls and results in its conversation, by the
modules for each format: `custom`, `namespaces`, `tool_search` and `anthropic`. Calls in an answer
become those of the caller's tools again by `stream.client_calls`.
"""
