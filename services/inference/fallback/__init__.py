"""Fallback: which models are tried for a request, in which order, and for how long.

`plan` makes a plan of a request, and `policy` says which failures are retried and which move on;
both are pure. `runner` runs a plan: `step_runner` one step of it, `starting` one attempt, with
`hedging` for a silent model, `circuit_breaker` for one that keeps failing, `budget` for the time
and the retries of all steps, and `attempt_log` for the attempts, each of which has an
`attempt_record` of what became of it.
"""
