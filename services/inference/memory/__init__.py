"""The server's memory in generation: split requests, begin turns, commit answers.

`split` divides a request into the part for Memory and the part that stays here. `begin_turn` begins
a turn of Memory through `turn_client`. `conversation` and `memory_notes` assemble the request for
each model. `commit` streams the answer, and commits it before its end reaches the caller, even if
the caller has left.
"""
