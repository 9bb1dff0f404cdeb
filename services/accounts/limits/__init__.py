"""Limits of keys, users and teams: their rules, where they are stored, and the leases on them.

`rules` has the limits as values, `repository` their table, `arithmetic` what a claim is granted,
`leases` the table of leases, and `servicer` gRPC. What a worker does with a lease is in
`services.inference.limits`.
"""
