"""Usage: what requests used and cost, and the sums of that by day.

`tables` has the records and the sums, `recording` adds batches of records, `reporting` sums up
what is asked for, `sweeper` deletes what is older than the settings keep, `servicer` is the gRPC
service.
"""
