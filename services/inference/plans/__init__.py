"""Plans: the models that may be tried for a request, their order, timeouts and retries.

`plan` makes the plan of a request. `policy` decides which failures are retried and which lead to
the next step. Both are pure.
"""
