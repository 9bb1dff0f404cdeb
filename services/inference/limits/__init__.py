"""Limits on requests: admission before a request, settlement after it.

`limiter` admits a request of a caller with limits, and settles it once it has been answered.
An allowance is what one key, user or team may use of one measure in one window. `allowance` does
the arithmetic of this worker's part of an allowance, `leaser` leases such parts from the
LimitService in batches, and `admission` takes from them for a request. `reservation` computes what
a request may use at most, with its input (`input_tokens`) and its fees (`fees`). `subjects` derives
the needs of a request from the caller's limits, and `refusals` makes the errors for reached limits.
"""
