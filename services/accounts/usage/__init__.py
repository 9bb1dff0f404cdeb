"""Usage records of requests, and their sums by day.

`tables` has the records and the sums, `recording` adds batches of records, `reporting` and
`activity` compute reports, `sweeper` deletes old records and sums, `servicer` is the gRPC service.
"""
