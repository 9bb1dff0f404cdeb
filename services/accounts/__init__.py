"""Accounts: keys, users, teams and plans.

What it can do: say whose key a call carries, for every other service and the facade; create,
change, rotate and revoke API keys; place a user in a team; set plans; keep the limits of keys,
users and teams, and lease to workers what those leave.

What it cannot do: show a key again (only SHA-256 hashes are kept), enforce what a plan allows
(each service does that for what is its own), or notice a revocation at once (an answer is
believed for `limits.identify_cache_s`).

Where what is: `keys` (what a key looks like), `plans` (plans by name), `names` (which names are
valid), `tables`, `membership` (who belongs where), `repository` (whose a key is), `servicer`
(gRPC), `admin` (changes, and their audit log), `limits` (limits and the leases on them), `usage`
(what requests used and cost), `development` (the key of a first start). Answers are remembered
by `services.common.authentication`.
"""
