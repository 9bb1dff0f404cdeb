"""Fallback: which models are tried for a request, in which order, and for how long.

`plan` reads that from a request; `failures`, `backoff` and `requests` are its rules, pure
like itself. `chain` runs a plan, with `hedge` for a silent model, `breakers` for one that
keeps failing, `recovery` for an answer that breaks off in the middle, and `ledger` to
write down every attempt.
"""
