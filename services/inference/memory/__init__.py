"""The server's memory in an answer: what is told to it, what a model sees of it, what it keeps.

A request is taken apart (`apart`); Memory is asked for what it remembers (`store`); for
each model that is tried the two are put together (`conversation`, `injected`); the answer
that wins is committed before the caller reads its end, also where the caller has left
(`telling`).
"""
