"""Plans: which models may be tried for a request, in which order, and in which bounds.

`plan` makes the plan of a request, and `policy` says which failures are retried and which move on;
both are pure. `budget` is what is left of the time and the retries of all steps.
"""
