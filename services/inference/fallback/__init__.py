"""Fallback: tries the models of a plan, in its order, for as long as it says.

`runner` runs a plan: `step_runner` one step of it, `starting` one attempt, with `hedging` for a
silent model, and `attempt_log` for what became of each attempt.
"""
