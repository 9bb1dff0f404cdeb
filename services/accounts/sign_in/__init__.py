"""Sessions of people who sign in to the console, and callers whom an issuer vouches for.

A session begins with a one-time code, an API key, or the answer of an OpenID Connect issuer. It
belongs to an API key: that of the sign-in, or a record of a key that nobody has, one for each
person of the issuer. So limits, usage and the end of a key apply to its sessions too.

Modules: `sessions` (sessions in the database), `claims` (people by the claims of a token, pure),
`people` (their users and keys in the database), `issuer` (the issuer's keys, and verification of
its tokens), `issuer_tokens` (callers with such tokens), `code_flow` (the authorization code flow),
`attempts` (what a browser keeps meanwhile),
`administrators` (which calls of administration are open), `servicer` (gRPC), `assembly`.
"""
