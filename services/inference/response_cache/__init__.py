"""The cache of answers to equal requests, off unless the settings turn it on.

`directives` reads `cache-control`, `rules` says whose answers may be kept, `keys` what makes two
requests equal, and `entries` how an answer is stored; these are pure. `cached_answers` answers
through the engine, or from the cache.
"""
