"""Filters of the events of an answer, and the accumulation of events to an answer. Pure.

A filter (`filters.StreamFilter`) transforms batches of events: `prefill`, `stop_sequences`,
`client_calls`, `sign_thinking` and `helper_usage`. `continuation` and `replay` join the rest of an
answer that broke off to its `delivered` part. `accumulator` builds a whole answer from events.
`batches` has the types, and recognizes the first content.
"""
