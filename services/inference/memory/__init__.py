"""The server's memory in generation: split requests, begin turns, commit answers.

`split` divides a request into the part for Memory and the part that stays here. `turn_client` opens
a turn in Memory. `conversation` assembles the request for each model. `commit` streams the answer,
and commits it before its end reaches the caller, even if the caller has left.
"""
