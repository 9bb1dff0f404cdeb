"""Limits on requests: admission before a request, settlement after it.

`limiter` admits one request of a caller with limits, and settles it once it has been answered.
An allowance is what one key, user or team may use of one measure in one window. `windows` has the
windows, `allowance` the arithmetic of this worker's part of an allowance, `leaser` leases such
parts from the LimitService in batches, and `admission` takes from them for a request. `subjects`
says what a caller's limits ask of a request, `refusals` what a caller is told when one is reached,
`headers` what it is told of its limits otherwise, and `usage` what an answer has used.
"""
