"""Allowances: what one subject may use of one measure in one window, counted for all workers.

`allowance` does the arithmetic of this worker's part of an allowance, `leaser` leases such parts
from the LimitService in batches, and `admission` takes from them for a request, by its `needs`.
`limit_errors` makes the errors for reached limits.
"""
