"""Limits of keys, users and teams: their rules, their storage, and the leases on them.

`rules` has the limits as values, `repository` their table, `arithmetic` the grant of a claim,
`leases` the table of leases, and `servicer` the gRPC service. Workers use their leases in
`services.inference.limits`.
"""
