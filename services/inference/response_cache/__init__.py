"""The cache of answers to equal requests, disabled by default.

`directives` parses `cache-control`, `rules` decides which requests are cacheable, `keys` makes the
cache key of a request, and `entries` serializes answers; these are pure. `cached_answers` answers
requests from the cache or by the engine.
"""
