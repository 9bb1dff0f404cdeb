"""The request log of a process: entries in memory, and their writing in batches.

The facade begins and ends entries, the usage recorder adds what requests used, and `recorder` sends
entries to the service that stores them.
"""
