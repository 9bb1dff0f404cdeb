"""Administration of keys, users and teams, over gRPC and by the `gateway` command.

The package creates, lists, changes, rotates and revokes API keys; creates and deletes users and
teams; moves users to teams; sets plans and limits; and lists the audit log. Each change and its
entry in the audit log are written in one transaction.

It cannot show a key again (only SHA-256 hashes are stored). The files, documents and usage records
of a deleted user remain. Changes do not take effect everywhere at once: each process caches the
owners of keys for up to `limits.identify_cache_s`, and usually drops a changed one within seconds
(`services.accounts.change_watch`).

Modules: `admin_keys` (the credential), `authentication` (of administrators), `keys`, `users`,
`teams`, `limits` (rows, and the rules on their changes), `subjects` (what these have in common),
`audit`, `servicer` (gRPC).
"""
