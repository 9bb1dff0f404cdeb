"""Accounts: keys, users, teams and plans.

The package identifies the owner of the API key of a call, for all services and the facade. It
creates, changes, rotates and revokes keys; manages users, teams and plans; and stores the limits of
keys, users and teams, and leases parts of their allowances to workers.

It cannot show a key again (only SHA-256 hashes are stored). Each service enforces the quotas of
plans for its own data. A revocation is not effective at once: each process caches the owners of
keys for up to `limits.identify_cache_s`, and usually drops a changed one within seconds
(`change_watch`).

Modules: `keys` (format of a key), `plans` (plans by name), `names` (rules of names), `tables`,
`membership` (users and their teams), `repository` (owners of keys), `servicer` (gRPC), `admin`
(changes, and their audit log), `limits` (limits and the leases on them), `usage` (usage records),
`development` (the key of a first start). The cache is in `services.common.grpc.authentication`.
"""
