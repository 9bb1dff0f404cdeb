"""Invitations: links with which people become users of the gateway with a role.

The token of an invitation is in the fragment of its link, which browsers send to no server; the
database has its SHA-256. Reading an invitation changes nothing, so that scanners of mail use
nothing up. Whoever accepts it either becomes a new user with a key for the sign-in, or signs in at
the issuer, whose user gets the role and the team.

Modules: `tables`, `administration` (made, listed, revoked), `acceptance` (read and accepted),
`servicer` (gRPC), `sweeper`.
"""
