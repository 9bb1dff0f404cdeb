"""Filters of the events of an answer, and what is put together of them. Pure.

A filter (`filters.StreamFilter`) takes batches of events and returns those that pass:
`prefill`, `stop_sequences`, `sign_thinking` and `helper_usage`; `continuation` and `replay`
join the rest of an answer that broke off to what was `delivered`. `accumulator` makes a
whole answer of events, and `content` says which of them are the first content.
"""
