"""Administration of keys, users and teams, over gRPC and by the `gateway` command.

What it can do: create, list, change, rotate and revoke API keys; create users and teams, move
users, set plans and limits; say who changed what. Each change and its entry in the audit log are
one transaction.

What it cannot do: show a key again (only SHA-256 hashes are kept), delete a user or a team (their
files, documents and records name them), or take effect at once everywhere (every process
remembers whose keys are for `limits.identify_cache_s`).

Where what is: `admin_keys` (the credential), `authentication` (who may administer), `keys`,
`users`, `teams`, `limits` (rows, and the rules on their changes), `audit`, `sweeper` (old entries),
`servicer` (gRPC).
"""
