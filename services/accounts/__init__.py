"""Accounts: keys, users, teams and plans.

What it can do: make, list and revoke API keys; place a user in a team; set a plan; tell
whose key a call carries, for every other service and the facade; keep the limits of keys, users and
teams, and lease to workers what those leave.

What it cannot do: show a key again (only SHA-256 hashes are kept), change anything over
the network (that is done with the `gateway` command, on a machine that reaches the
database), enforce what a plan allows (each service does that for what is its own), or
notice a revocation at once (an answer is believed for `limits.identify_cache_s`).

Where what is: `keys` (what a key looks like), `plans` (plans by name), `repository` (the
tables and the rules on who belongs where), `limits` (limits and the leases on them), `servicer`
(gRPC), `development` (the key of a first start). Answers are remembered by
`services.common.authentication`.
"""
