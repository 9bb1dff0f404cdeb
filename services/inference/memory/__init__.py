"""The server's memory in generation: split requests, open turns, commit answers.

`split` divides a request into what Memory receives and what stays here; `open_turn` opens a turn of
Memory through `turn_client`; `conversation` and `memory_notes` assemble the request that each model
sees; `commit` streams the answer, and commits it before its end reaches the caller, also where the
caller has left.
"""
