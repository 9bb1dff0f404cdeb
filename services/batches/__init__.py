"""Batches: many requests to models that workers run in the background.

A batch is stored with its requests, and split into tasks in one queue that all workers of a
database share. A worker leases a task, runs its requests as if their callers had sent them, and
stores the results in the transaction in which it still holds the task: each request has exactly one
result, although one may be run again if its worker dies first.
"""
