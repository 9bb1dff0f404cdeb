"""Fallback: tries the models of a plan in order, within its time and retries.

`runner` runs a plan, `step_runner` one step, and `starting` one attempt. `hedging` starts the next
model beside a silent one. `attempt_log` records the outcome of each attempt, and reports it by
`attempt_reports`.
"""
