"""Fallback: tries the models of a plan in order, within its time and retries.

`runner` runs a plan, and `step_runner` one step; `run` is the state that steps share, and starts
attempts. `hedging` starts the next model beside a silent one. `attempt_log` records the outcome of
each attempt, and reports it by `attempt_reports`.
"""
